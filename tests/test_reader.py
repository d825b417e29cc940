"""What a student hands in costs that student, and nobody else, however it is made.

Each file here once ended the reading of a whole class, or took minutes of it. All are tried in a
class with a neighbour before and one after.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from classroom import Instant, hand_in, marks, report_of, rows, waits
from commandline import Cli, Said

from grader.classroom import intake
from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions.layouts import Attempt, AttemptPart, attempt, collect
from grader.submissions.opening import MAX_ENTRIES
from grader.submissions.reader import host, messages, template
from grader.submissions.reader.exchange import ReadingLimits
from grader.submissions.reader.template import ReaderTemplate
from grader.submissions.submission import Submission, discover

pytestmark = pytest.mark.in_turn

TINY = Path(__file__).parent / "tiny"
READER = Path(__file__).parent / "hostile_reader.py"
MIB = 1 << 20
Graded = Callable[[str, bytes], tuple[Said, dict[str, Any]]]


def notebook(*cells: Any, **header: Any) -> bytes:
    shape = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **header}
    return json.dumps(shape, ensure_ascii=False).encode()


def code(source: str, outputs: Any = ()) -> dict[str, Any]:
    cell = {"cell_type": "code", "metadata": {}, "execution_count": None, "id": "c"}
    return {**cell, "source": source, "outputs": list(outputs)}


@pytest.fixture
def graded(cli: Cli, instant: Instant, tmp_path: Path, tiny_solution: str) -> Graded:
    """Grade a class in which s002 hands in one file; return what was said, and s002's report."""

    def grading(name: str, data: bytes) -> tuple[Said, dict[str, Any]]:
        folder, out = tmp_path / "class", tmp_path / "out"
        neighbours = {f"{student}/scale.py": tiny_solution for student in ("s001", "s003")}
        hand_in(folder, neighbours)
        (folder / "s002").mkdir()
        (folder / "s002" / name).write_bytes(data)
        said = cli("batch", folder, "--out", out, "--course", TINY, "--seed", 5)
        for neighbour in ("s001", "s003"):
            assert report_of(out, neighbour)["exercises"][0]["tests"], said.err
        return said, report_of(out, "s002")

    return grading


def many_extra_fields() -> bytes:
    """Return a zip whose list of members is 16 MiB of extra fields."""
    path = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / f"extra-{os.getpid()}.zip"
    try:
        with zipfile.ZipFile(path, "w") as archive:
            for number in range(240):
                member = zipfile.ZipInfo(f"m{number}.py")
                archive.writestr(member, b"")
                member.extra = b"\xfe\xca\x00\x00" * 16_000  # in the list of members alone
        return path.read_bytes()
    finally:
        path.unlink(missing_ok=True)


HEADING = {"cell_type": "heading", "metadata": {}, "source": ""}
UNREADABLE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a heading in version 3": (
        "scale.ipynb",
        lambda: notebook(HEADING, nbformat=3),
        "is not a readable notebook",
    ),
    "deeply nested JSON": (
        "scale.ipynb",
        lambda: b'{"nbformat": 4, "cells": ' + b"[" * 1_000_000,
        "is not a readable notebook",
    ),
    "a number of a million digits": (
        "scale.ipynb",
        lambda: b'{"nbformat": 4, "cells": [' + b"9" * 1_000_000 + b"]}",
        "is not a readable notebook",
    ),
    "code in four-byte characters": (
        "scale.ipynb",
        lambda: notebook(code("# " + "\U0001f600" * 250_000)),
        "holds more than 256 KiB of code",
    ),
    "a hundred thousand cells": (
        "scale.ipynb",
        lambda: notebook(*[code("")] * 50_000),
        "holds more than 5000 cells",
    ),
    "extra fields of 16 MiB": ("work.zip", many_extra_fields, "too long"),
}
STRANGE: dict[str, Callable[[], bytes]] = {
    "a heading in version 4": lambda: notebook(HEADING),
    "a heading without a version": lambda: json.dumps({"cells": [HEADING]}).encode(),
    "definitions in a text of 8 MiB": lambda: notebook(
        {**HEADING, "cell_type": "raw", "source": "def scale(x, f): return x\n" * 300_000}
    ),
    "fences without an end": lambda: notebook(
        {**HEADING, "cell_type": "markdown", "source": "def scale(\n" + "```\n~~~\n" * 100_000}
    ),
    "cells that all go on": lambda: notebook(
        code("class Scale:\n    x = 1"), *[code("    def f(self): pass")] * 4_000
    ),
    "a definition in each cell": lambda: notebook(*[code("def scale(x, f): return x")] * 4_000),
    "headings of a level of 1e9": lambda: notebook(
        nbformat=3, worksheets=[{"cells": [{**HEADING, "level": 10**9}]}]
    ),
    "outputs of an unknown type": lambda: notebook(
        code("x = 1", [{"output_type": "zz"}] * 100_000)
    ),
    "an escape without a name": lambda: notebook(code("%\n,\n;\n/\n!\n??\n%%")),
    "many escapes": lambda: notebook(code("%x\n" + "/f a\n" * 50_000)),
    "many assigned magics": lambda: notebook(code("%x\n" + "a = %b c\n" * 25_000)),
    "many cells with magics": lambda: notebook(*[code("%x\n" + "/f a\n" * 400)] * 125),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read_costs_its_student_alone(case: str, graded: Graded) -> None:
    name, data, reason = UNREADABLE[case]
    said, report = graded(name, data())
    assert (said.code, report["points"]) == (1, 0)
    assert reason in report["exercises"][0]["advice"]
    assert any(reason in flag for flag in report["flags"])


@pytest.mark.slow
def test_notebooks_of_any_make_are_read_in_time(
    cli: Cli, tmp_path: Path, tiny_solution: str
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    hand_in(folder, {f"{student}/scale.py": tiny_solution for student in ("s001", "s999")})
    students = {f"s{number:03}": case for number, case in enumerate(STRANGE, start=2)}
    for student, case in students.items():
        (folder / student).mkdir()
        (folder / student / "scale.ipynb").write_bytes(STRANGE[case]())
    said = cli("batch", folder, "--out", out, "--course", TINY, "--seed", 5)
    assert said.code == 1, said.err
    assert {student: points for student, points in marks(out).items() if points != "0"} == {
        "s001": "8",
        "s999": "8",
    }
    for student, case in students.items():
        exercise = report_of(out, student)["exercises"][0]
        # On a busy machine, what costs a second may reach the limit, which is its student's loss.
        is_named = "reading it takes" in exercise["advice"]
        assert exercise["tests"] or is_named, f"{case}: {exercise['advice']}"


def test_an_error_of_any_kind_makes_a_notebook_unreadable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from IPython.core.inputtransformer2 import TransformerManager

    from grader.submissions.notebook import UnreadableNotebook, read_notebook

    def fail(*values: object) -> str:
        raise IndexError("list index out of range")

    monkeypatch.setattr(TransformerManager, "transform_cell", fail)
    with pytest.raises(UnreadableNotebook, match="list index out of range"):
        read_notebook(notebook(code("%x")))


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 100_000,
        "x = " + "-" * 200_000 + "1",
        "x = " + "a." * 100_000 + "b",
        "x = 1" + " + 1" * 60_000,
        "f'" + "{f'" * 80_000,
        "match x:\n" + " case [" + "[" * 100_000,
    ],
    ids=["brackets", "signs", "attributes", "sums", "f-strings", "patterns"],
)
def test_a_text_that_a_parser_cannot_take_costs_its_student_alone(
    text: str, graded: Graded
) -> None:
    """The file has another name, so it is searched for what it defines."""
    said, report = graded("homework.py", text.encode())
    assert (said.code, report["points"]) == (1, 0)


@pytest.mark.slow
def test_all_texts_of_a_submission_are_bounded_together(core: Course, tmp_path: Path) -> None:
    hand_in(tmp_path / "s001", {f"{name}.py": "#" * 256 * 1024 for name in core.names})
    assert set(discover([tmp_path / "s001"], core).files) == set(core.names)
    for name in core.names[:4]:
        (tmp_path / "s001" / f"{name}.py").unlink()
        lines = f"# {name}" + "\n" * 250_000 + "("  # a broken cell is commented out, line by line
        (tmp_path / "s001" / f"{name}.ipynb").write_bytes(notebook(code(lines)))
    found = discover([tmp_path / "s001"], core)
    assert sum(len(text.encode()) for text in found.files.values()) <= messages.MAX_TEXTS
    assert any("together longer than 2 MiB" in why for why in found.problems.values())


def test_a_file_that_holds_many_exercises_counts_once(course: Course, tmp_path: Path) -> None:
    cells = [code(f"# {'x' * 3000}\n{course[name].read('solution.py')}") for name in course.names]
    (tmp_path / "homework.ipynb").write_bytes(notebook(*cells))
    found = discover([tmp_path / "homework.ipynb"], course)
    assert not found.problems
    assert set(found.files) == set(course.names)
    assert len(course.names) * len(found.files["tiny_gpt"]) > messages.MAX_TEXTS


def class_zip(path: Path, solution: str) -> Path:
    """Write a class zip in which the parts of s002 and s003 cannot be unpacked."""
    link = zipfile.ZipInfo("class/s003/scale.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        for student in ("s001", "s004"):
            archive.writestr(f"class/{student}/scale.py", solution)
        for number in range(MAX_ENTRIES + 1):
            archive.writestr(f"class/s002/{number}.txt", "")
        archive.writestr(link, "/etc/passwd")
    return path


@pytest.mark.slow
def test_what_is_left_out_of_a_class_zip_is_told_to_its_student(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_solution: str
) -> None:
    path, out = class_zip(tmp_path / "class.zip", tiny_solution), tmp_path / "out"
    said = cli("batch", path, "--out", out, "--course", TINY, "--seed", 5)
    assert said.code == 1, said.err
    assert marks(out) == {"s001": "8", "s002": "0", "s003": "0", "s004": "8"}
    reasons = {"s002": "s002` holds more than 10000 files", "s003": "s003/scale.py` is a link"}
    for student, reason in reasons.items():
        report = report_of(out, student)
        assert reason in report["exercises"][0]["advice"]
        assert any(reason in flag for flag in report["flags"])
    for neighbour in ("s001", "s004"):
        assert not report_of(out, neighbour)["notes"]


def test_a_folder_with_too_many_entries_is_refused_before_they_are_looked_at(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(tmp_path / "class", {f"s00{number}/scale.py": "x = 1\n" for number in range(1, 5)})
    monkeypatch.setattr(attempt, "MAX_CLASS_ENTRIES", 3)
    said = cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    assert said.code == 2
    assert "holds more than 3 files and folders" in said.err


# --- a reader that misbehaves ---------------------------------------------------------------------


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Have readers behave badly for every submission that holds the word `hostile`."""
    made: list[ReaderTemplate] = []

    def behave(how: str) -> None:
        command = sys.executable, "-I", "-W", "ignore", str(READER), how
        monkeypatch.setattr(template, "COMMAND", command)
        made.append(ReaderTemplate())
        monkeypatch.setitem(host._readers, "fork", made[-1])

    yield behave
    for reader in made:
        reader.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("floods", "what was read exceeds 4 MiB"),
        ("nonsense", "gave no usable answer"),
        ("other answer", "gave no usable answer"),
        ("other exercise", "gave no usable answer"),
        ("too much text", "gave no usable answer"),
        ("text of nothing", "gave no usable answer"),
        ("no text", "gave no usable answer"),
        ("is killed", "was killed twice"),
        ("crashes", "crashed (SIGSEGV)"),
        ("leaves", "ended without an answer"),
        ("eats memory", "MiB of memory"),
        ("says the disk is full", "cannot read what"),
        ("has little time", "more than 3 seconds of computing"),
    ],
)
def test_a_reader_that_misbehaves_costs_the_submission_that_it_reads(
    how: str, reason: str, hostile: Callable[[str], None], graded: Graded
) -> None:
    hostile(how)
    said, report = graded("scale.py", b"hostile = 1\n")
    assert (said.code, report["points"]) == (1, 0), said.err
    assert reason in report["exercises"][0]["advice"]
    assert any(reason in flag for flag in report["flags"])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["sleeps", "computes"])
def test_a_reader_that_does_not_end_is_ended(
    how: str,
    hostile: Callable[[str], None],
    graded: Graded,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = ReadingLimits(seconds=20.0 if how == "computes" else 1.5, cpu_seconds=1)
    monkeypatch.setattr(ReaderTemplate.ask, "__defaults__", (None, limits))
    hostile(how)
    said, report = graded("scale.py", b"hostile = 1\n")
    assert (said.code, report["points"]) == (1, 0), said.err
    assert "takes" in report["exercises"][0]["advice"]


def test_a_student_whose_attempts_take_long_to_read_does_not_keep_the_class(
    cli: Cli, instant: Instant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, clock = Counter[str](), threading.local()  # each reader has a thread of its own

    def now() -> float:
        return getattr(clock, "now", 0.0)

    def slowly(attempt: Attempt, course: Course) -> Submission:
        calls[attempt.student] += 1
        clock.now = now() + (10 if attempt.student == "501" else 0)
        return collect(attempt, course)

    monkeypatch.setattr(intake, "collect", slowly)
    monkeypatch.setattr(intake, "time", SimpleNamespace(monotonic=now))
    versions = {f"ab_501_{100 + n}_scale-{n}.py": f"# {n % 9} points" for n in range(1, 31)}
    hand_in(tmp_path / "class", {**versions, "cd_502_9_scale.py": "# 8 points"})
    cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    assert calls["501"] in (4, 5)  # 30 seconds of those before, one beside, the one that counts
    assert marks(tmp_path / "out") == {"501": "3", "502": "8"}
    calls.clear()
    best = ("--attempt", "best", "--out", tmp_path / "best", "--course", TINY)
    cli("batch", tmp_path / "class", *best)
    assert calls["501"] in (12, 13)  # 120 seconds, and one beside
    assert set(marks(tmp_path / "best")) == {"501", "502"}


def test_the_longest_reading_leaves_time_for_what_is_graded() -> None:
    assert intake.MOST_SLOW + ReadingLimits().seconds < intake.MOST_SLOW_GRADED


def attempt_in(folder: Path) -> Attempt:
    return Attempt(folder.name, (AttemptPart(folder, folder.name),))


@pytest.mark.slow
def test_no_reader_imports_ipython_for_one_notebook(
    hostile: Callable[[str], None], tmp_path: Path, tiny_course: Course
) -> None:
    hand_in(tmp_path, {"s001/scale.ipynb": notebook(code("%time x = 1")).decode()})
    hostile("says whether it was warm")
    said = [collect(attempt_in(tmp_path / "s001"), tiny_course).files["scale"] for _ in range(2)]
    assert said == ["True", "True"]


def test_a_template_that_is_killed_is_started_again(tmp_path: Path, tiny_course: Course) -> None:
    hand_in(tmp_path, {"s001/scale.py": "x = 1\n"})
    assert collect(attempt_in(tmp_path / "s001"), tiny_course).files
    first = host.readers().pid
    assert first
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)  # it dies soon, not at once
    assert collect(attempt_in(tmp_path / "s001"), tiny_course).files == {"scale": "x = 1\n"}
    assert host.readers().pid != first


@pytest.mark.slow
def test_a_reader_can_read_its_own_attempt_and_no_other(
    hostile: Callable[[str], None], tmp_path: Path, tiny_course: Course
) -> None:
    hand_in(tmp_path, {"s001/scale.py": "hostile = 1\n", "s002/scale.py": "secret = 1\n"})
    hostile("reads a neighbour")
    found = collect(attempt_in(tmp_path / "s001"), tiny_course)
    assert found.files["scale"] == "Permission denied"


def test_a_full_disk_is_not_the_students_fault(
    hostile: Callable[[str], None],
    tmp_path: Path,
    tiny_course: Course,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hand_in(tmp_path, {"s001/scale.py": "hostile = 1\n"})
    hostile("says the disk is full")

    def full(*values: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(template.os, "posix_fallocate", full)
    with pytest.raises(RequestError, match="cannot read what s001 handed in: No space left"):
        collect(attempt_in(tmp_path / "s001"), tiny_course)


def test_nothing_of_a_reader_stays(tmp_path: Path, tiny_course: Course) -> None:
    hand_in(tmp_path, {"s001/scale.py": "x = 1\n"})
    with zipfile.ZipFile(tmp_path / "s002.zip", "w") as archive:
        archive.writestr("s002/scale.py", "x = 2\n")
    path = tmp_path / "s002.zip"
    assert collect(Attempt("s002", (AttemptPart(path, path.name),)), tiny_course).files
    root = Path(host.readers().root)
    assert root.is_dir()
    # The template ends a reader while this process goes on; its next answer comes after that.
    with pytest.raises(RequestError):
        discover([tmp_path / "nothing"], tiny_course)
    assert waits(lambda: len(list(root.iterdir())) <= 1)
    host.readers().close()
    assert not root.exists()


# --- what counts as the same submission -----------------------------------------------------------


@pytest.mark.slow
def test_a_file_with_the_text_of_a_notebook_is_another_submission(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_solution: str, tiny_course: Course
) -> None:
    folder = tmp_path / "class"
    hand_in(folder, {"s002/scale.ipynb": notebook(code(tiny_solution)).decode()})
    text = collect(attempt_in(folder / "s002"), tiny_course).files["scale"]
    hand_in(folder, {"s001/scale.py": text, "s003/scale.py": text})
    cli("batch", folder, "--out", tmp_path / "out", "--course", TINY, "--seed", 5)
    found = dict(rows(tmp_path / "out", "SELECT student, hash FROM attempts"))
    assert found["s001"] == found["s003"] != found["s002"]
    for student, digest in found.items():
        assert report_of(tmp_path / "out", student)["hashes"]["submission"] == digest


def test_the_hash_of_texts_alone_is_that_of_files_with_these_texts(
    tmp_path: Path, tiny_course: Course
) -> None:
    hand_in(tmp_path, {"s001/scale.py": "x = 1\n"})
    read = collect(attempt_in(tmp_path / "s001"), tiny_course)
    assert read.hash == Submission("s001", {"scale": "x = 1\n"}, {"scale": "scale.py"}).hash
