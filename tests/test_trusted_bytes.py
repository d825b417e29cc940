"""Of a trusted course, the bytes that were compared run, and nothing that lies beside them."""

from __future__ import annotations

import importlib.util
import marshal
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click import unstyle
from commandline import Cli
from strangers import NAME, suite_of

from grader.commands import work
from grader.commands.options import PROGRESS_VARIABLE
from grader.commands.trusted_courses import recognised
from grader.course import records
from grader.course.course import find_course
from grader.files import zipped
from grader.jupyter import MAX_OTHERS, _show_notes
from grader.reports.text import BAR, bar

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
TINY = ROOT / "tests" / "tiny"


@pytest.fixture
def teaching(tmp_path: Path) -> Path:
    """A teaching repository."""
    shutil.copytree(TINY, tmp_path / "own", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "own"


def in_own_process(*arguments: object) -> int:
    """Run a command where no pytest is around it, whose own importer would come first."""
    command = [sys.executable, "-P", "-m", "grader", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True).returncode


def forge_bytecode(suite: Path, attack: str) -> None:
    """Put code beside a suite that Python would run in its place, without a look at the suite."""
    path = Path(importlib.util.cache_from_source(str(suite)))
    path.parent.mkdir(exist_ok=True)
    code = compile(suite.read_text() + attack, str(suite), "exec")
    unchecked = (1).to_bytes(4, "little")
    path.write_bytes(importlib.util.MAGIC_NUMBER + unchecked + bytes(8) + marshal.dumps(code))


def in_package_of_tests(clone: Path, attack: str) -> None:
    (clone / "exercises" / "tests" / "__init__.py").write_text(attack)


def in_packages_above(clone: Path, attack: str) -> None:
    for folder in (clone, clone / "exercises", clone / "exercises" / "tests"):
        (folder / "__init__.py").write_text(attack)


def in_bytecode(clone: Path, attack: str) -> None:
    forge_bytecode(suite_of(clone), attack)


@pytest.mark.slow
@pytest.mark.parametrize("plant", [in_package_of_tests, in_packages_above, in_bytecode])
def test_nothing_beside_the_suites_of_a_copy_that_is_known_runs(
    clone: Path, attack: str, outside: Path, plant: Callable[[Path, str], None]
) -> None:
    plant(clone, attack)
    assert recognised(find_course(clone)).trusted
    assert (in_own_process("check", NAME), outside.exists()) == (0, False)


def in_packages_of_reference(teaching: Path, attack: str) -> None:
    for folder in (teaching, teaching / "reference", teaching / "reference" / "scale"):
        (folder / "__init__.py").write_text(attack)


def in_bytecode_of_reference(teaching: Path, attack: str) -> None:
    forge_bytecode(teaching / "reference" / "scale" / "test_hidden.py", attack)


@pytest.mark.slow
@pytest.mark.parametrize("plant", [in_packages_of_reference, in_bytecode_of_reference])
def test_no_bytecode_and_no_package_of_a_teaching_repository_runs(
    teaching: Path, attack: str, outside: Path, plant: Callable[[Path, str], None]
) -> None:
    plant(teaching, attack)
    work_of_student = teaching.parent / "scale.py"
    shutil.copy(teaching / "reference" / "scale" / "solution.py", work_of_student)
    planted = {*teaching.rglob("*.pyc")}
    code = in_own_process("check", work_of_student, "--course", teaching)
    assert (code, outside.exists()) == (0, False)
    assert {*teaching.rglob("*.pyc")} == planted  # nothing is written either


@pytest.mark.slow
def test_what_changes_after_a_copy_was_recognised_does_not_run(
    clone: Path, cli: Cli, attack: str, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, own_files = suite_of(clone).read_text(), work.own_files

    def change_and_go_on(*arguments: Any) -> Any:
        suite_of(clone).write_text(original + attack)
        (clone / "exercises" / records.file_of(NAME)).write_bytes(b"no zip")
        (clone / "exercises" / "course.json").write_text("{}")
        return own_files(*arguments)

    monkeypatch.setattr(work, "own_files", change_and_go_on)
    said = cli("check", NAME)
    assert (said.code, outside.exists()) == (0, False), said


@pytest.mark.slow
def test_an_error_in_a_suite_is_said_of_the_file_in_the_copy(clone: Path, cli: Cli) -> None:
    suite_of(clone).write_text("import torch\n\nraise RuntimeError('no')\n")
    cli("trust", ".", "--yes")
    said = cli("check", NAME)
    assert said.code == 2
    assert f"exercises/tests/test_{NAME}.py does not collect: line 3: RuntimeError: no" in said.err


@pytest.mark.slow
def test_no_program_of_the_course_imports_an_exercise_that_nobody_reviewed(
    teaching: Path, cli: Cli, attack: str, outside: Path
) -> None:
    scale, imported = (teaching / "reference" / name for name in ("scale", "left_pad"))
    shutil.copytree(scale, imported)
    settings = imported / "exercise.toml"
    settings.write_text(f"reviewed = false\n{settings.read_text()}")
    course = teaching / "reference" / "course.toml"
    course.write_text(course.read_text().replace("points = 10", "points = 20"))
    (imported / "solution.py").write_text(attack)
    solution = scale / "solution.py"
    text = solution.read_text()
    solution.write_text(text.replace("import torch\n", "import left_pad\nimport torch\n", 1))
    assert "left_pad" in solution.read_text()
    wrong = teaching.parent / "scale.py"
    wrong.write_text(text.replace("return ", "return 2 * ", 1))
    said = cli("check", "scale", wrong, "--course", teaching)
    assert (said.code, outside.exists()) == (1, False), said
    assert "scale" in said.out


def forging(change: str) -> str:
    """Return code for a suite that changes the report which its process gives."""
    return f"""
import json as _json, msgspec as _msgspec
_encode = _msgspec.json.encode
def _forged(value):
    report = _json.loads(_encode(value))
    result = report["exercises"][0]
    {change}
    return _json.dumps(report).encode()
_msgspec.json.encode = _forged
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "result.update(points=20_000_000, max_points=1)",
        "result.update(points=20_000_000, max_points=20_000_000)",
        "result.update(points=-20_000_000)",
        "result.update(given_back=20_000_000)",
        "result.update(charges=[dict(fault='x', says='x', points=10**9)])",
        "result['tests'] *= 1000",
        "result['tests'][0].update(max_points=10**9)",
        "result.update(hints=['x' * 100_000])",
        "report.update(notes=['x'] * 100_000)",
        "result.update(hints=[''] * 1_500_000)",
    ],
)
def test_a_report_that_no_course_gives_is_refused(clone: Path, cli: Cli, change: str) -> None:
    with suite_of(clone).open("a") as file:
        file.write(forging(change))
    said = cli("check", NAME)
    assert (said.code, str(clone) in said.err) == (2, True), said
    assert len(said.out + said.err) < 2000


@pytest.mark.slow
def test_a_confined_course_adjusts_no_points(clone: Path, cli: Cli) -> None:
    with suite_of(clone).open("a") as file:
        file.write(forging("result.update(adjustment=dict(points=1e9, why='because'))"))
    said = cli("check", NAME, "--format", "json")
    assert (said.code, "because" in said.out) == (0, False)


@pytest.mark.slow
def test_a_confined_course_says_little_of_how_far_it_is(
    clone: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with suite_of(clone).open("a") as file:
        file.write(
            f"""
import gc as _gc, sys as _sys
from grader.grading.confined_messages import Note as _Note, PrepareTraining as _Prepare
_hosts = [o for o in _gc.get_objects() if isinstance(o, _sys.modules["__main__"].Host)]
for _each in range(3000):
    _hosts[0].send(_Note({NAME!r}, "so far\\nno line\\x1b[2J" + "x" * 5000))
    _hosts[0].send(_Prepare())
_hosts = []
"""
        )
    monkeypatch.setenv(PROGRESS_VARIABLE, "1")
    said = cli("check", NAME)
    assert (said.code, "so far no line" in said.err) == (0, True), said
    lines = said.err.splitlines()
    assert all(line.startswith(NAME) and len(line) < 200 for line in lines)
    assert len(lines) < 100


def test_a_notebook_keeps_few_lines_of_a_check() -> None:
    said = _show_notes((f"{number}\n" for number in range(100_000)), NAME)
    assert said.count("\n") == MAX_OTHERS
    assert said.endswith("99999\n")


def test_trust_unpacks_no_more_of_a_record_than_it_may(clone: Path, cli: Cli) -> None:
    huge = zipped({records.CASES: bytes(records.MAX_CASES + 1)}, level=1)
    (clone / "exercises" / records.file_of(NAME)).write_bytes(huge)
    said = cli("trust", ".")
    assert (said.code, "unpacked" in said.err) == (2, True), said


def test_a_bar_is_as_long_as_a_bar() -> None:
    for points, worth in ((20_000_000, 1), (-5, 1), (1, -1), (1, 0), (3, 10)):
        assert len(unstyle(bar(points, worth))) == BAR


def test_modules_of_suites_are_gone_after_a_check(clone: Path, cli: Cli) -> None:
    cli("check", NAME)
    assert not [name for name in sys.modules if name.endswith(f"test_{NAME}")]
