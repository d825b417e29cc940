"""The code of a course runs as the caller only if the caller trusts it: copies are strangers'."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Cli
from strangers import NAME, SOLUTION, suite_of

from grader.commands import work
from grader.commands.standby_process import CheckOrder, Standby
from grader.commands.trusted_courses import recognised, trust_folder
from grader.course import records
from grader.course.course import find_course, load_course
from grader.errors import RequestError
from grader.files import zipped
from grader.user_folders import state_folder

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parent.parent
TINY = ROOT / "tests" / "tiny"
NOBODY = 65534
SAID = "They run confined"


def in_public_test(clone: Path, attack: str) -> None:
    with suite_of(clone).open("a") as file:
        file.write(attack)


def put_in_record(root: Path, name: str, code: str) -> None:
    """Put code into the recorded cases of an exercise."""
    path = root / "exercises" / records.file_of(name)
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    parts[records.CASES] += code.encode()
    path.write_bytes(zipped(parts))


def in_record(clone: Path, attack: str) -> None:
    put_in_record(clone, NAME, attack)


def in_settings(clone: Path, attack: str) -> None:
    path = clone / "exercises" / "course.json"
    public = json.loads(path.read_text())
    for exercise in public["exercises"]:
        exercise["drawing"] = f"{attack}\ndef draw(module, trained):\n    return ()\n"
        exercise["example"] = attack
    path.write_text(json.dumps(public))


def in_reference(clone: Path, attack: str) -> None:
    shutil.copytree(TINY / "reference", clone / "reference")
    shutil.copytree(SOLUTION.parent, clone / "reference" / NAME)
    for file in (clone / "reference").rglob("*.py"):
        file.write_text(file.read_text() + attack)
    settings = (clone / "reference" / NAME / "exercise.toml").read_text()
    settings = "\n".join(line for line in settings.splitlines() if "builds_on" not in line)
    (clone / "reference" / NAME / "exercise.toml").write_text(settings)
    course = (clone / "reference" / "course.toml").read_text()
    points = 10 + load_course(ROOT)[NAME].points
    course = course.replace("points = 10", f"points = {points}")
    (clone / "reference" / "course.toml").write_text(course)


def in_configuration(clone: Path, attack: str) -> None:
    in_public_test(clone, "\n# changed\n")
    for folder in (clone, clone / "exercises", clone / "exercises" / "tests"):
        for name in ("conftest.py", "sitecustomize.py", "usercustomize.py", "click.py", "torch.py"):
            (folder / name).write_text(attack)
        (folder / "pytest.ini").write_text("[pytest]\naddopts = -p conftest\n")
        (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-p torch"\n')
        (folder / "named.toml").write_text("[[named]]\n")


def in_linked_folder(clone: Path, attack: str) -> None:
    in_public_test(clone, attack)
    (clone / "exercises").rename(clone.parent / "elsewhere")
    (clone / "exercises").symlink_to(clone.parent / "elsewhere")


PLACES: list[Callable[[Path, str], None]] = [
    *(in_public_test, in_record, in_settings, in_reference, in_configuration, in_linked_folder),
]


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLACES)
def test_code_in_a_strangers_copy_writes_nothing_and_the_verdict_comes(
    plant: Callable[[Path, str], None], clone: Path, attack: str, outside: Path, cli: Cli
) -> None:
    plant(clone, attack)
    said = cli("check", NAME)
    assert (said.code, outside.exists()) == (0, False), said
    assert NAME in said.out
    assert "passed" in said.out


@pytest.mark.slow
def test_code_in_a_strangers_copy_finds_no_secret_and_no_way_out(clone: Path) -> None:
    in_public_test(
        clone,
        """
import os, socket
from grader.errors import Mismatch
def attempt(do):
    try:
        return repr(do())
    except BaseException as error:
        return type(error).__name__
def look():
    return "|".join([
        "RAN", repr(dict(os.environ)),
        *(attempt(lambda: open(f"/proc/{pid}/environ", "rb").read())
          for pid in ("self", os.getppid(), 1)),
        attempt(lambda: open(os.path.expanduser("~root/.profile")).read()),
        "socket " + attempt(socket.socket), "fork " + attempt(os.fork),
        "make " + attempt(lambda: open("made", "w")),
    ])
@pytest.mark.points(0)
def test_look(student):
    \"\"\"Looks around.\"\"\"
    raise Mismatch(look())
""",
    )
    environment = {**os.environ, "DEPLOY_TOKEN": "hunter2-of-the-caller"}
    command = [sys.executable, "-m", "grader", "check", NAME, "--format", "json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert "RAN" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    for refused in ("socket PermissionError", "fork PermissionError", "make PermissionError"):
        assert refused in done.stdout
    tests = json.loads(done.stdout)["exercises"][0]["tests"]
    assert sum(test["outcome"] == "passed" for test in tests) == len(tests) - 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "says"),
    [("import os; os._exit(0)", "ended"), ("raise SystemExit", "pytest ended")],
)
def test_code_that_ends_its_process_is_named(clone: Path, cli: Cli, code: str, says: str) -> None:
    in_public_test(clone, f"\n{code}\n")
    said = cli("check", NAME)
    assert said.code == 2
    assert str(clone) in said.err
    assert says in said.err


@pytest.mark.slow
def test_code_that_never_ends_is_ended(
    clone: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_public_test(clone, "\nwhile True: pass\n")
    monkeypatch.setattr("grader.grading.confined_grader.MOST_SECONDS", 0.5)
    monkeypatch.setattr("grader.grading.confined_grader.START_SECONDS", 8.0)
    said = cli("check", NAME)
    assert (said.code, "in time" in said.err) == (2, True), said


@pytest.mark.slow
def test_a_changed_test_is_told_once_and_trust_shows_it(
    clone: Path, cli: Cli, attack: str, outside: Path
) -> None:
    in_public_test(clone, attack.replace("\nimport os", "\n# \x1b]0;title\x07\nimport os"))
    in_record(clone, attack)
    flat = [" ".join(cli("check", NAME).out.split()) for _ in range(2)]
    assert [SAID in out for out in flat] == [True, False]
    assert not outside.exists()
    said = cli("trust", ".", "--yes")
    assert (said.code, "\x1b" in said.out) == (0, False)
    assert f"changed  exercises/tests/test_{NAME}.py" in said.out
    assert f"changed  exercises/records/{NAME}.bin: cases.py" in said.out
    assert str(outside) in said.out
    assert cli("check", NAME).code == 0
    assert outside.exists()  # which shows that the attack works where it is trusted
    assert "trusted already" in cli("trust", ".").out
    outside.unlink()
    in_public_test(clone, "\n# changed again\n")
    cli("check", NAME)
    assert not outside.exists()


def test_trust_asks_and_takes_silence_for_no(
    clone: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_public_test(clone, "\n# changed\n")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    said = cli("trust", ".")
    assert said.code == 1
    assert not recognised(find_course(clone)).trusted


def test_what_init_and_handout_wrote_and_a_clone_of_the_course_are_trusted(
    cli: Cli, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recognised(find_course(clone)).trusted  # equals the installed course
    for file in (clone / "exercises" / "tests").glob("*.py"):  # as git writes it on Windows
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    shutil.rmtree(str(state_folder()))
    assert recognised(find_course(clone)).trusted
    own = tmp_path / "own"
    shutil.copytree(TINY, own, ignore=shutil.ignore_patterns("__pycache__"))
    cli("build", "--course", own)
    cli("handout", tmp_path / "out", "--course", own)
    shutil.copytree(tmp_path / "out", tmp_path / "cloned")
    assert recognised(find_course(tmp_path / "cloned")).trusted
    assert recognised(find_course(own)).trusted  # built by its user
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of-a-student"))
    for known_elsewhere in ("cloned", "own"):
        assert not recognised(find_course(tmp_path / known_elsewhere)).trusted


def test_a_teaching_repository_is_trusted_by_its_place_only_if_it_is_the_users_own(
    tmp_path: Path,
) -> None:
    shutil.copytree(TINY, tmp_path / "own")
    assert trust_folder(tmp_path / "own")
    suite = tmp_path / "own" / "reference" / "scale" / "test_hidden.py"
    suite.write_text(suite.read_text() + "\n# an edit\n")
    assert recognised(find_course(tmp_path / "own")).trusted
    suite.parent.chmod(0o777)
    assert not recognised(find_course(tmp_path / "own")).trusted
    suite.parent.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(suite, NOBODY, NOBODY)
        assert not recognised(find_course(tmp_path / "own")).trusted


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another user")
def test_a_course_that_another_user_planted_is_not_found(
    clone: Path,
    cli: Cli,
    attack: str,
    outside: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_public_test(clone, attack)
    shared, mine = tmp_path / "shared", tmp_path / "shared" / "mine"
    mine.mkdir(parents=True)
    shared.chmod(0o1777)
    shutil.copytree(clone / "exercises", shared / "exercises")
    monkeypatch.chdir(mine)
    for owner in (0, NOBODY):  # somebody could have moved a folder of the user's there
        for path in (shared / "exercises", *(shared / "exercises").rglob("*")):
            os.chown(path, owner, owner)
        said = cli("check", NAME)
        assert said.code == 2
        assert "everybody may put things into" in said.err
    shared.chmod(0o755)
    assert "belongs to another user" in cli("check", NAME).err
    os.chown(shared, NOBODY, NOBODY)
    assert "belongs to another user" in cli("check", NAME).err
    assert "--course DIR" in cli("status").err
    assert not outside.exists()


def test_the_search_ends_at_a_repository_and_at_home(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = clone / "work" / "deep"
    inside.mkdir(parents=True)
    assert find_course(inside).root == clone
    (clone / "work" / ".git").mkdir()
    with pytest.raises(RequestError, match="no course at"):
        find_course(inside)
    (clone / "work" / ".git").rmdir()
    monkeypatch.setenv("HOME", str(clone / "work"))
    with pytest.raises(RequestError, match="no course at"):
        find_course(inside)
    monkeypatch.setenv("HOME", str(clone))
    assert find_course(inside).root == clone


@pytest.mark.parametrize(
    "command",
    [
        ("batch", "..", "--out", "../out"),
        ("batch", ".", "--out", "../out"),
        ("export", "canvas", "../out"),
        ("explain", "../out", "s001"),
        ("regrade", "../out"),
        ("validate",),
        ("build",),
        ("name", "--out", "../out"),
    ],
)
def test_teachers_commands_refuse_a_course_that_was_handed_in(
    clone: Path, cli: Cli, command: tuple[str, ...], attack: str, outside: Path
) -> None:
    in_reference(clone, attack)
    said = cli(*command)
    assert said.code == 2
    assert not outside.exists()
    if command[0] != "name":  # which asks for more first
        assert f"grader trust {clone}" in said.err


def test_batch_refuses_even_a_right_course_inside_of_what_was_handed_in(
    clone: Path, cli: Cli
) -> None:
    said = cli("batch", "..", "--out", "../out")
    assert (said.code, "part of what was handed in" in said.err) == (2, True)
    assert "--course DIR" in said.err


@pytest.mark.slow
def test_check_of_a_path_takes_the_course_of_the_caller_and_says_so(
    clone: Path,
    cli: Cli,
    attack: str,
    outside: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_public_test(clone, f"\nraise SystemExit\n{attack}")
    cli("init", tmp_path / "own")
    monkeypatch.chdir(tmp_path / "own")
    said = cli("check", NAME, "../s017")
    says = f"the course in {tmp_path / 'own'} grades this, not the one in ../s017"
    assert (said.code, says.replace(" ", "") in "".join(said.out.split())) == (0, True)
    assert not outside.exists()


@pytest.mark.slow
def test_other_commands_run_nothing_and_write_nothing_outside(
    clone: Path, cli: Cli, attack: str, outside: Path
) -> None:
    for plant in (in_public_test, in_record, in_settings):
        plant(clone, attack)
    path = clone / "exercises" / "course.json"
    path.write_text(path.read_text().replace("hints", "hints", 1).replace("Masked", "\\u001b[2J"))
    outside.mkdir()
    (clone / ".grader").symlink_to(outside)
    for command in ((), ("status",), ("hint", NAME), ("check", NAME)):
        said = cli(*command)
        assert (said.code, "\x1b[2J" in said.out) == (0, False), command
    assert list(outside.iterdir()) == []
    public = json.loads(path.read_text())
    public["exercises"][0]["name"] = "../../elsewhere"
    path.write_text(json.dumps(public))
    said = cli("reset", NAME)
    assert (said.code, "an exercise of this copy" in said.err) == (2, True)


@pytest.mark.slow
def test_a_notebook_checks_a_strangers_copy_confined(
    clone: Path, attack: str, outside: Path, tmp_path: Path
) -> None:
    in_public_test(clone, attack)
    (tmp_path / "work").mkdir()
    shutil.copy(SOLUTION, tmp_path / "work" / f"{NAME}.py")
    order = CheckOrder(
        str(clone), str(tmp_path / "work" / "notebook.ipynb"), NAME, str(tmp_path / "page"), 5
    )
    standby = Standby()
    code, said = standby.check(order, lambda lines, exercise: "".join(lines))
    standby._end()
    assert (code, outside.exists()) == (0, False), said


@pytest.mark.slow
def test_watch_grades_a_strangers_copy_confined(
    clone: Path, cli: Cli, attack: str, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_public_test(clone, attack)
    monkeypatch.setattr("sys.stdin", io.StringIO())  # which ends it
    said = cli("check", NAME, "--watch", "--manual")
    assert outside.exists() is False
    assert NAME in said.out


@pytest.mark.slow
def test_where_nothing_confines_the_command_says_how_to_trust(
    clone: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "why_not_here", lambda: "confinement: only Linux has it")
    assert cli("check", NAME).code == 0  # nothing was changed
    in_public_test(clone, "\n# changed\n")
    said = cli("check", NAME)
    assert (said.code, f"grader trust {clone}" in said.err) == (2, True)
    cli("trust", ".", "--yes")
    assert cli("check", NAME).code == 0


# --- what a stranger's repository brings along ----------------------------------------------------


@pytest.fixture
def own(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A teaching repository of the user's own with one exercise, whose checks have cases."""
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    assert "not trusted" not in cli("new", "centre").out
    for path in (tmp_path / "own" / "reference").rglob("*.*"):
        path.write_text(path.read_text().replace("TODO: ", ""))
    return tmp_path / "own"


def is_trusted(root: Path) -> bool:
    return recognised(find_course(root)).trusted


@pytest.mark.parametrize("command", ["new", "import"])
def test_a_course_that_begins_among_a_strangers_files_is_not_trusted(
    command: str, clone: Path, cli: Cli
) -> None:
    notebook = clone.parent / "marked.ipynb"
    mark = {"schema_version": 3, "grade": False, "locked": False, "task": False, "points": 2}
    cells = [
        ("code", "answer", True, "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n"
         "    ### END SOLUTION\n"),
        ("code", "test_answer", False, "assert double(2) == 4\n"),
    ]  # fmt: skip
    marked = [
        {
            "cell_type": kind,
            "id": name.replace("_", "-"),
            "source": text,
            "outputs": [],
            "execution_count": None,
            "metadata": {
                "nbgrader": {**mark, "grade_id": name, "solution": answer, "grade": not answer}
            },
        }
        for kind, name, answer, text in cells
    ]
    notebook.write_text(
        json.dumps({"cells": marked, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    arguments = {"new": ("new", "centre"), "import": ("import", "nbgrader", notebook)}[command]
    for there in ("planted", ""):
        root = clone.parent / f"{command}-{there}"
        (root / "reference" / there).mkdir(parents=True)
        said = cli(*arguments, "--course", root)
        assert said.code == 0, said
        assert (is_trusted(root), f"grader trust {root}   shows" in said.out) == (
            not there,
            bool(there),
        )


@pytest.mark.slow
def test_cases_that_are_not_those_of_reference_are_stale_and_never_run(
    own: Path, cli: Cli, attack: str, outside: Path
) -> None:
    assert cli("build").code == 0
    own_record = own / "exercises" / records.file_of("centre")
    planted = own_record.with_name("planted.bin")
    for path in (own_record, planted):
        path.write_bytes(own_record.read_bytes())
        put_in_record(own, path.stem, attack)
        said = cli("build", "--check")
        assert (said.code, f"stale: exercises/records/{path.name}" in said.out) == (1, True)
        assert "grader build" in cli("handout", "../students").err
        said = cli("validate")
        assert (said.code, f"{path.name}: not what `grader build`" in said.out) == (1, True)
        assert not outside.exists()
        assert cli("build").code == 0
        assert outside.exists() is False
        assert cli("build", "--check").code == 0
    assert cli("handout", "../students").code == 0
    handed_out = own.parent / "students" / "exercises" / records.file_of("centre")
    assert str(outside) not in records.cases_in(handed_out.read_bytes(), "centre")


def test_an_exercise_without_cases_in_reference_gets_none_from_the_record(
    own: Path, cli: Cli, attack: str
) -> None:
    path = own / "exercises" / records.file_of("centre")
    path.parent.mkdir(parents=True)
    suite = 'def test_it(student):\n    """It works."""\n    student.centre\n'
    (own / "reference" / "centre" / "test_hidden.py").write_text(suite)
    path.write_bytes(zipped({records.CASES: attack.encode(), records.ANSWERS: b""}))
    assert "stale: exercises/records/centre.bin" in cli("build", "--check").out
    cli("build")
    assert not path.exists()


@pytest.mark.parametrize(
    "line",
    [
        "++__import__('os').getcwd()",
        "--__import__('os').getcwd()",
        f"x = 1;{' ' * 130}__import__('os').getcwd()",
        "#\r__import__('os').getcwd()",
    ],
)
def test_trust_shows_every_line_whole(line: str, clone: Path, cli: Cli) -> None:
    in_public_test(clone, f"\n{line}\n")
    said = cli("trust", ".", "--yes")
    assert said.code == 0
    assert "__import__('os').getcwd()" in said.out.replace("\n    ", "")


def test_trust_shows_what_python_takes_for_a_comment(clone: Path, cli: Cli) -> None:
    path = clone / "exercises" / "tests" / f"test_{NAME}.py"
    first, second, *others = path.read_text().splitlines()
    path.write_text("\n".join([f"{first}\u2028{second}", *others]))
    assert "\\u2028" in cli("trust", ".", "--yes").out


def test_trust_refuses_code_that_python_reads_in_another_encoding(clone: Path, cli: Cli) -> None:
    path = clone / "exercises" / "tests" / f"test_{NAME}.py"
    path.write_text(f"# coding: utf-7\n{path.read_text()}")
    said = cli("trust", ".", "--yes")
    assert (said.code, "is not in UTF-8" in said.err) == (2, True)


@pytest.mark.parametrize("key", ["drawing", "draw\u0007ing", "\u0007example"])
def test_trust_shows_the_settings_that_run(key: str, clone: Path, cli: Cli) -> None:
    path = clone / "exercises" / "course.json"
    public = json.loads(path.read_text())
    (exercise,) = (each for each in public["exercises"] if each["name"] == NAME)
    exercise.pop(key.replace("\u0007", ""), None)
    exercise[key] = "import planted\n"
    path.write_text(json.dumps(public))
    said = cli("trust", ".", "--yes")
    file = f"{key}.py".replace("\u0007", "")
    assert f"exercises/course.json: {NAME}/{file}" in said.out, said
    assert said.code == 0


def test_a_copy_with_two_exercises_of_one_name_is_refused(clone: Path, cli: Cli) -> None:
    path = clone / "exercises" / "course.json"
    public = json.loads(path.read_text())
    (exercise,) = (each for each in public["exercises"] if each["name"] == NAME)
    public["exercises"].insert(0, exercise | {"drawing": "import planted\n"})
    path.write_text(json.dumps(public))
    for command in (("trust", ".", "--yes"), ("check", NAME)):
        said = cli(*command)
        assert (said.code, f"two exercises are called `{NAME}`" in said.err) == (2, True), said


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A teaching repository that is trusted as a folder, of a user who knows no other course."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(TINY, tmp_path / "tiny", ignore=shutil.ignore_patterns("__pycache__"))
    assert trust_folder(tmp_path / "tiny")
    return tmp_path / "tiny"


def make_writable(file: Path) -> None:
    file.chmod(0o666)


def make_writable_for_a_group(file: Path) -> None:
    os.chown(file, -1, NOBODY)
    file.chmod(0o664)


def make_link(file: Path) -> None:
    file.rename(file.parents[3] / "elsewhere.py")
    file.symlink_to(file.parents[3] / "elsewhere.py")


@pytest.mark.parametrize("open_", [make_writable, make_writable_for_a_group, make_link])
@pytest.mark.parametrize(
    "place", ["reference/scale/test_hidden.py", "exercises/tests/test_scale.py"]
)
def test_a_repository_with_a_file_that_others_may_write_is_known_by_its_contents_only(
    open_: Callable[[Path], None], place: str, repository: Path, cli: Cli
) -> None:
    if open_ is make_writable_for_a_group and os.geteuid() != 0:
        pytest.skip("needs another group")
    (repository / "exercises" / "tests").mkdir(parents=True)
    (repository / "exercises" / "tests" / "test_scale.py").write_text("")
    assert cli("trust", repository).out.endswith("is trusted already\n")
    open_(repository / place)
    assert not is_trusted(repository)
    if open_ is not make_link:
        assert "as its files are now" in cli("trust", repository, "--yes").out
        assert is_trusted(repository)
    suite = repository / "reference" / "scale" / "test_public.py"
    suite.write_text(suite.read_text() + "\n# an edit\n")
    assert not is_trusted(repository)


def test_another_folder_in_the_place_of_a_trusted_one_is_not_known(
    repository: Path, cli: Cli
) -> None:
    assert is_trusted(repository)
    shutil.rmtree(repository)
    shutil.copytree(TINY, repository, ignore=shutil.ignore_patterns("__pycache__"))
    assert not is_trusted(repository)
    said = cli("trust", repository, "--yes").out
    assert "also when its files change" in said
    assert re.search(r"^\d+ files of the installed course are not in this one$", said, re.M)
    assert is_trusted(repository)


def test_a_name_of_an_installed_course_and_of_a_folder_here_is_refused(
    clone: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(TINY, tmp_path / "site" / "tiny_course")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    assert "scale" in cli("status", "--course", "tiny_course").out
    shutil.copytree(clone, tmp_path / "tiny_course")
    said = cli("status", "--course", "tiny_course")
    assert (said.code, "--course ./tiny_course" in said.err) == (2, True)
    assert NAME in cli("status", "--course", "./tiny_course").out
