"""In a tree that somebody else may have filled, nothing is read or written through a link."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commandline import Cli, Said

from grader import trees
from grader.__main__ import run
from grader.commands.bringing import LIST
from grader.files import write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes links, pipes and devices")

SECRET = b"a line that nobody else may read or replace\n"
DEEP = "[" * 100_000
ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe"
Plant = Callable[[Path], None]


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    """End a test that waits for a pipe."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder of somebody else's, which is afterwards as it was."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "file").write_bytes(SECRET)
    yield folder
    assert {path.name for path in folder.iterdir()} == {"file"}
    assert (folder / "file").read_bytes() == SECRET


def put_link(victim: Path) -> Plant:
    return lambda at: at.symlink_to(victim / "file")


def put_dangling_link(victim: Path) -> Plant:
    return lambda at: at.symlink_to(victim / "not_there")


def put_link_to_zeros(victim: Path) -> Plant:
    return lambda at: at.symlink_to("/dev/zero")


def put_pipe(victim: Path) -> Plant:
    return os.mkfifo


def put_hard_link(victim: Path) -> Plant:
    return lambda at: os.link(victim / "file", at)


def put_folder(victim: Path) -> Plant:
    return Path.mkdir


IN_THE_WAY = (
    *(put_link, put_dangling_link, put_link_to_zeros),
    *(put_pipe, put_hard_link, put_folder),
)


def replace(path: Path, plant: Plant) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    plant(path)


def contents(folder: Path) -> dict[str, bytes | str]:
    """What is in a folder, links unfollowed."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        if stat.S_ISREG(path.lstat().st_mode)
        else stat.filemode(path.lstat().st_mode)
        for path in folder.rglob("*")
    }


# --- what is handed out ---------------------------------------------------------------------------


@pytest.fixture
def homework(cli: Cli, tiny_copy: Path, tmp_path: Path) -> Path:
    """A hand-out of the tiny course, whose course has changed since."""
    cli("build", "--course", tiny_copy)
    assert cli("handout", tmp_path / "homework", "--course", tiny_copy).code == 0
    change(cli, tiny_copy, "two")
    return tmp_path / "homework"


def change(cli: Cli, course: Path, word: str) -> None:
    """Change the course: a public test, the statement and the title."""
    reference = course / "reference"
    for file, text in (
        ("scale/test_public.py", f"# {word}\n"),
        ("scale/statement.md", f"\nMore: {word}.\n"),
    ):
        path = reference / file
        path.write_text(path.read_text() + text)
    settings = reference / "course.toml"
    first, _, rest = settings.read_text().partition("\n")
    assert first.startswith("title")
    settings.write_text(f'title = "Tiny {word}"\n{rest}')
    assert cli("build", "--course", course).code == 0


def update(cli: Cli, homework: Path, course: Path) -> Said:
    return cli("handout", homework, "--course", course, "--update")


def refused(said: Said, name: str, homework: Path, before: dict[str, bytes | str]) -> None:
    """The command has said what is in the way, and how to go on, and has written nothing."""
    assert said.code == 2, said.out + said.err
    assert name in said.err
    assert "nothing was written" in said.err
    assert "try: " in said.err
    assert contents(homework) == before


@pytest.mark.parametrize("put", IN_THE_WAY)
@pytest.mark.parametrize("name", [LIST, "README.md", "exercises/tests/test_scale.py"])
def test_an_update_writes_nothing_through_what_is_no_file(
    name: str, put: Callable[[Path], Plant], cli: Cli, homework: Path, tiny_copy: Path, victim: Path
) -> None:
    replace(homework / name, put(victim))
    before = contents(homework)
    refused(update(cli, homework, tiny_copy), name, homework, before)
    replace(homework / name, lambda at: None)
    if name != LIST:
        assert update(cli, homework, tiny_copy).code == 0


@pytest.mark.parametrize("name", ["exercises", "exercises/tests"])
def test_an_update_writes_nothing_through_a_folder_that_is_a_link_and_names_it_once(
    name: str, cli: Cli, homework: Path, tiny_copy: Path, victim: Path
) -> None:
    replace(homework / name, lambda at: at.symlink_to(victim))
    before = contents(homework)
    refused(update(cli, homework, tiny_copy), f"{name} is a link; so", homework, before)


def test_a_new_version_is_not_put_through_a_link(
    cli: Cli, homework: Path, tiny_copy: Path, victim: Path
) -> None:
    (homework / "README.md").write_text("my own\n")
    (homework / "README.new.md").symlink_to(victim / "not_there")
    before = contents(homework)
    refused(update(cli, homework, tiny_copy), "README.new.md is a link", homework, before)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data + b" " * (5 << 20),
        lambda data: DEEP.encode(),
        lambda data: b'{"README.md": ' + DEEP.encode(),
        lambda data: b"\xff\xfe\x00",
        lambda data: b'{"README.md": 7}',
    ],
)
def test_a_damaged_list_is_refused_and_never_taken_for_an_empty_one(
    damage: Callable[[bytes], bytes], cli: Cli, homework: Path, tiny_copy: Path
) -> None:
    path = homework / LIST
    path.write_bytes(damage(path.read_bytes()))
    before = contents(homework)
    said = update(cli, homework, tiny_copy)
    refused(said, LIST, homework, before)
    assert f"checkout -- {LIST}" in said.err


def test_without_its_list_a_hand_out_is_compared_with_the_course(
    cli: Cli, homework: Path, tiny_copy: Path
) -> None:
    """As the message on a damaged list promises."""
    (homework / LIST).unlink()
    old = (homework / "README.md").read_bytes()
    said = cli("handout", homework, "--course", tiny_copy)
    assert "README.md is not the course's: it stays as it is" in said.out
    assert (homework / "README.md").read_bytes() == old
    assert "Tiny two" in (homework / "README.new.md").read_text()


def test_a_list_of_other_paths_leads_nowhere(
    cli: Cli, homework: Path, tiny_copy: Path, victim: Path
) -> None:
    path = homework / LIST
    listed = json.loads(path.read_bytes())
    listed |= {"../victim/file": "0" * 64, str(victim / "file"): "0" * 64, "x" * 100_000: "0"}
    path.write_text(json.dumps(listed))
    said = update(cli, homework, tiny_copy)
    assert (said.code, "updated" in said.out) == (0, True)


def test_an_updated_file_keeps_its_mode(cli: Cli, homework: Path, tiny_copy: Path) -> None:
    (homework / "README.md").chmod(0o664)
    update(cli, homework, tiny_copy)
    assert "Tiny two" in (homework / "README.md").read_text()
    assert stat.S_IMODE((homework / "README.md").stat().st_mode) == 0o664


@pytest.mark.slow
@pytest.mark.parametrize("put", [put_link, put_pipe, put_folder])
@pytest.mark.parametrize(
    ("platform", "name"),
    [
        ("prairielearn", "serverFilesCourse/attention_grader/settings.json"),
        ("prairielearn", "questions/scale/info.json"),
        ("classroom50", "autograder.py"),
    ],
)
def test_autograders_are_not_written_through_what_is_no_file(
    platform: str,
    name: str,
    put: Callable[[Path], Plant],
    cli: Cli,
    tiny_copy: Path,
    tmp_path: Path,
    victim: Path,
) -> None:
    cli("build", "--course", tiny_copy)
    command = ("autograder", platform, "--course", tiny_copy, "--out", tmp_path / "out")
    assert cli(*command).code == 0
    replace(tmp_path / "out" / name, put(victim))
    before = contents(tmp_path / "out")
    said = cli(*command)
    assert (said.code, name in said.err) == (2, True)
    assert contents(tmp_path / "out") == before


# --- killed in the middle -------------------------------------------------------------------------

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def killed(arguments: list[object], at: int) -> bool:
    """Run a command in a process that dies before its `at`-th write; return whether it did."""
    pid = os.fork()
    if not pid:
        left = at

        def count(event: str, given: tuple[object, ...]) -> None:
            nonlocal left
            is_write = event in ("os.rename", "os.mkdir", "os.remove") or (
                event == "open" and isinstance(given[2], int) and bool(given[2] & WRITES)
            )
            if is_write and not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= is_write

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.addaudithook(count)
        os._exit(run(list(map(str, arguments))))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.slow
def test_an_update_that_is_killed_at_any_write_goes_on_as_if_it_had_not_been(
    cli: Cli, homework: Path, tiny_copy: Path, tmp_path: Path
) -> None:
    work = (homework / "exercises/scale.py").read_text() + "# mine\n"
    (homework / "exercises/scale.py").write_text(work)
    old, places = contents(homework), list[Path]()
    whole = shutil.copytree(homework, tmp_path / "whole")
    assert update(cli, whole, tiny_copy).code == 0
    new = contents(whole)
    while True:
        places.append(shutil.copytree(homework, tmp_path / f"killed-{len(places)}"))
        command = ["handout", places[-1], "--course", tiny_copy, "--update"]
        if not killed(command, len(places) - 1):
            break
        for name, data in contents(places[-1]).items():
            is_draft = trees.UNFINISHED.fullmatch(Path(name).name)
            assert is_draft or name == LIST or data in (old.get(name), new.get(name)), name
    assert len(places) > 8
    change(cli, tiny_copy, "three")
    fresh = tmp_path / "fresh"
    assert cli("handout", fresh, "--course", tiny_copy).code == 0
    for place in places:
        said = update(cli, place, tiny_copy)
        assert (said.code, said.out.count("stays as it is")) == (0, 1)
        expected = contents(fresh)
        expected["exercises/scale.new.py"] = expected["exercises/scale.py"]
        expected["exercises/scale.py"] = work.encode()
        assert contents(place) == expected


@pytest.mark.slow
def test_a_first_hand_out_that_is_killed_goes_on_as_an_update(
    cli: Cli, homework: Path, tiny_copy: Path, tmp_path: Path
) -> None:
    places = list[Path]()
    while True:
        places.append(tmp_path / f"killed-{len(places)}")
        command = ["handout", places[-1], "--course", tiny_copy]
        if not killed(command, 3 * (len(places) - 1)):
            break
    assert len(places) > 3
    change(cli, tiny_copy, "three")
    assert cli("handout", tmp_path / "fresh", "--course", tiny_copy).code == 0
    for place in places:
        is_begun = (place / LIST).exists()
        said = cli("handout", place, "--course", tiny_copy, *(["--update"] if is_begun else []))
        assert (said.code, "stays as it is" in said.out) == (0, False)
        assert contents(place) == contents(tmp_path / "fresh")


# --- the state of somebody else -------------------------------------------------------------------


@pytest.fixture
def copy(cli: Cli, homework: Path, monkeypatch: pytest.MonkeyPatch, tiny_solution: str) -> Path:
    """A student's copy with a right solution that was not checked yet."""
    (homework / "exercises/scale.py").write_text(tiny_solution)
    monkeypatch.chdir(homework)
    return homework


def state(copy: Path, **changed: object) -> str:
    """The state that a check of the solution leaves, with other values."""
    file = copy / "exercises/scale.py"
    last = {"points": 3, "passed": False, "hash": memory_hash(file.read_text())} | changed
    return json.dumps({"hints": {}, "checked": {str(file): last}})


def memory_hash(text: str) -> str:
    from grader.commands.memory import _hash

    return _hash(text)


STATES: dict[str, Callable[[Path, Path], None]] = {
    "link": lambda at, victim: at.symlink_to(victim / "file"),
    "dangling link": lambda at, victim: at.symlink_to(victim / "not_there"),
    "zeros": lambda at, victim: at.symlink_to("/dev/zero"),
    "pipe": lambda at, victim: os.mkfifo(at),
    "hard link": lambda at, victim: os.link(victim / "file", at),
    "folder": lambda at, victim: at.mkdir(),
    "deep": lambda at, victim: at.write_text(DEEP) and None,
    "deep unknown": lambda at, victim: at.write_text(f'{{"x": {DEEP}') and None,
    "100 MB": lambda at, victim: at.touch() or os.truncate(at, 100 << 20),
    "cut": lambda at, victim: at.write_text('{"hints": {"sca') and None,
    "other types": lambda at, victim: at.write_text('{"checked": {"x": {"points": -1}}}') and None,
    "no text": lambda at, victim: at.write_bytes(b"\xff\x00") and None,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", STATES)
def test_state_that_is_no_state_is_left_out_with_a_note(
    kind: str, cli: Cli, copy: Path, victim: Path
) -> None:
    path = copy / ".grader" / "progress.json"
    path.parent.mkdir()
    STATES[kind](path, victim)
    said = cli("status")
    assert (said.code, "changed since it was last checked" in said.out) == (0, True)
    assert f"{path} " in said.err
    assert "are ignored" in said.err
    assert cli("hint", "scale").out.startswith("hint 1 of 3")
    assert cli("check", "scale").code == 0
    assert ("passed" in cli("status").out) == (kind != "folder")


@pytest.mark.slow
def test_a_state_folder_that_is_a_link_is_neither_read_nor_written(
    cli: Cli, copy: Path, victim: Path
) -> None:
    (copy / ".grader").symlink_to(victim)
    assert cli("hint", "scale").code == 0
    assert cli("check", "scale").code == 0
    said = cli("reset", "scale")
    assert (said.code, ".grader is a link" in said.err) == (2, True)
    assert cli("status").code == 0


def test_texts_of_state_move_no_cursor(cli: Cli, copy: Path) -> None:
    path = copy / ".grader" / "progress.json"
    path.parent.mkdir()
    hint = f"Look{ESCAPES} here.\n\n{'more ' * 100_000}"
    path.write_text(state(copy, hint=hint, points=10**30, unknown={"x": ESCAPES}))
    said = cli("hint", "scale")
    assert said.out.startswith("hint 1 of 5, on your mistake\n  Look")
    assert len(cli("hint", "scale", "--all").out) < 10_000
    shown = said.out + cli("hint", "scale", "--all").out + cli("status").out
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    assert "8 / 8" in cli("status").out


def test_texts_of_a_course_move_no_cursor(cli: Cli, copy: Path) -> None:
    path = copy / "exercises" / "course.json"
    data = json.loads(path.read_text())
    data["title"] = data["exercises"][0]["title"] = f"Tiny{ESCAPES}"
    data["exercises"][0]["hints"] = [f"Look{ESCAPES} here.", "b", "c"]
    path.write_text(json.dumps(data))
    said = cli("hint", "scale")
    assert "Look" in said.out
    assert not set(said.out + cli("status").out) & {"\x1b", "\x07", "\u202e"}


@pytest.mark.parametrize("name", ["../../victim/file", f"a{ESCAPES}", "/etc/x", ""])
def test_an_exercise_is_no_path(name: str, cli: Cli, copy: Path, victim: Path) -> None:
    path = copy / "exercises" / "course.json"
    data = json.loads(path.read_text())
    data["exercises"][0]["name"] = name
    path.write_text(json.dumps(data))
    said = cli("reset", name)
    assert (said.code, "download the course again" in said.err) == (2, True)
    assert not set(said.err) & {"\x07", "\u202e"}


def test_a_course_of_brackets_is_a_wrong_course(cli: Cli, copy: Path) -> None:
    (copy / "exercises" / "course.json").write_text(DEEP)
    said = cli("status")
    assert (said.code, "not valid JSON" in said.err) == (2, True)


# --- exercises ------------------------------------------------------------------------------------


@pytest.mark.parametrize("put", [put_link, put_dangling_link, put_pipe, put_hard_link, put_folder])
def test_reset_replaces_only_a_file_of_its_own(
    put: Callable[[Path], Plant], cli: Cli, copy: Path, victim: Path
) -> None:
    replace(copy / "exercises/scale.py", put(victim))
    said = cli("reset", "scale")
    assert (said.code, "exercises/scale.py is" in said.err) == (2, True)
    assert not (copy / ".grader").exists()


def test_reset_writes_to_no_other_folder(cli: Cli, copy: Path, victim: Path) -> None:
    shutil.move(copy / "exercises", copy / "mine")
    (copy / "exercises").symlink_to("mine")
    said = cli("reset", "scale")
    assert (said.code, "exercises is a link" in said.err) == (2, True)


@pytest.mark.parametrize("name", ["exercises", "exercises/tests"])
def test_build_writes_to_no_other_folder(
    name: str, cli: Cli, tiny_copy: Path, victim: Path
) -> None:
    cli("build", "--course", tiny_copy)
    replace(tiny_copy / name, lambda at: at.symlink_to(victim))
    said = cli("build", "--course", tiny_copy)
    assert (said.code, "is a link" in said.err) == (2, True)


def test_build_removes_nothing_through_a_link(cli: Cli, tiny_copy: Path, victim: Path) -> None:
    (victim / "file").rename(victim / "notes.py")
    cli("build", "--course", tiny_copy)
    shutil.rmtree(tiny_copy / "exercises/tests")
    (tiny_copy / "exercises/tests").symlink_to(victim)
    assert cli("build", "--course", tiny_copy).code == 2
    (victim / "notes.py").rename(victim / "file")


@pytest.mark.parametrize("put", [put_pipe, put_link_to_zeros, put_folder])
def test_a_record_that_is_no_file_is_refused(
    put: Callable[[Path], Plant], cli: Cli, copy: Path, victim: Path
) -> None:
    replace(copy / "exercises/records/scale.bin", put(victim))
    (copy / "exercises/scale.py").write_text("def scale(x, factor):\n    return x\n")
    said = cli("check", "scale", "--course", copy)
    assert (said.code, "scale.bin" in said.err) == (2, True)


# --- files of one's own ---------------------------------------------------------------------------


def test_a_file_that_is_written_whole_replaces_a_link(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "page.html").symlink_to(victim / "file")
    write_whole(tmp_path / "page.html", "new")
    assert (tmp_path / "page.html").read_text() == "new"


def test_a_draft_is_written_to_nothing_that_is_there(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set[str]()
    draft = trees.draft_name
    for _ in range(10):
        names.add(draft(tmp_path / "page.html"))
    assert len(names) == 10
    monkeypatch.setattr("grader.files.draft_name", lambda path: ".draft")
    monkeypatch.setattr("grader.trees.draft_name", lambda path: ".draft")
    (tmp_path / ".draft").symlink_to(victim / "file")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "page.html", "new")
    (tmp_path / ".draft").symlink_to(victim / "file")
    with pytest.raises(OSError, match="exists"):
        trees.write_file(tmp_path / "page.html", tmp_path, b"new")
