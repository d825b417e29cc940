"""The loop of a student at work: save, see, mend; one screen, one key."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import sys
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from commandline import Cli
from conftest import ROOT
from terminals import Open, terminals_in
from warm import run_warm

from grader.commands import keyboard
from grader.commands.keyboard import read_key
from grader.commands.screen import KEYS, Session, screen
from grader.commands.terminal import Interrupted
from grader.commands.work import CheckRequest
from grader.course.course import NOTEBOOKS, load_course
from grader.grading.grader import Grader
from grader.grading.session import with_grader
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import discover

pytestmark = pytest.mark.in_turn

NAMES = ("masked_softmax", "layer_norm", "transformer_block")
AtWork = Callable[[Callable[[Session], None]], None]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A course with the stubs of a student who has just begun."""
    for folder in ("reference", "exercises"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def solve(copy: Path, name: str, *changes: tuple[str, str]) -> None:
    text = (ROOT / "reference" / name / "solution.py").read_text()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    (copy / "exercises" / f"{name}.py").write_text(text)


@pytest.fixture
def at_work(copy: Path, zygote: Zygote) -> AtWork:
    """Run something with a session over three exercises, everything else as `grader` does."""

    def working(body: Callable[[Session], None]) -> None:
        course = load_course(copy)
        paths = (course.student_folder,)
        request = CheckRequest(course, discover(paths, course), NAMES, paths)
        with_grader(course, NAMES, zygote, lambda grader: body(Session(request, grader, 7)))

    return working


def shown(session: Session, height: int = 23) -> str:
    page = click.unstyle(screen(session, height))
    lines = page.splitlines()
    assert len(lines) <= height
    assert max(map(len, lines)) < 80
    return " ".join(page.split())


@pytest.mark.slow
def test_a_student_at_work(copy: Path, at_work: AtWork) -> None:
    def work(session: Session) -> None:
        session.refresh()
        assert "0 of 3 exercises" in shown(session)
        assert "next: Masked softmax" in shown(session)

        solve(
            copy, "masked_softmax", ("weights = torch.softmax(scores, dim=-1)", "weights = scores")
        )
        assert session.refresh() == ("masked_softmax",)
        assert "grader hint masked_softmax" in shown(session)

        solve(copy, "masked_softmax")
        session.refresh()
        page = shown(session)
        assert re.search(r"✓ Masked softmax: all \d+ checks pass\. Well done\.", page)
        assert " ".join(load_course(copy)["masked_softmax"].idea.split()) in page
        assert "next: layer_norm" in page
        assert "1 of 3 exercises" in page

        session.press("n")
        assert "Transformer block" in shown(session)  # behind the one that was next
        assert "multi_head_attention comes first" in shown(session)

    at_work(work)


@pytest.mark.slow
def test_only_what_changed_and_what_requires_it_is_graded_again(
    copy: Path, at_work: AtWork
) -> None:
    def work(session: Session) -> None:
        assert session.refresh() == NAMES
        assert session.refresh() == ()
        solve(copy, "layer_norm")
        assert session.refresh() == ("layer_norm", "transformer_block")
        solve(copy, "transformer_block")
        assert session.refresh() == ("transformer_block",)
        session.press("r")
        assert "2 of 3 exercises" in shown(session)

    at_work(work)


@pytest.mark.slow
def test_hints_of_the_mistake_come_first_and_are_remembered(copy: Path, at_work: AtWork) -> None:
    def work(session: Session) -> None:
        solve(copy, "layer_norm", ("correction=0", "correction=1"))
        session.refresh()
        session.press("n")
        session.press("h")
        assert "hint 1 of 4" in shown(session)
        assert "torch.var and torch.std correct for a sample" in shown(session)
        session.press("h")
        assert "hint 2 of 4" in shown(session)

    at_work(work)


@pytest.mark.slow
def test_a_hint_on_the_mistake_comes_before_those_that_were_seen(
    copy: Path, at_work: AtWork
) -> None:
    def work(session: Session) -> None:
        session.refresh()
        session.press("n")
        session.press("h")
        assert "hint 1 of 3" in shown(session)
        solve(copy, "layer_norm", ("correction=0", "correction=1"))
        session.refresh()
        session.press("h")
        assert "torch.var and torch.std correct for a sample" in shown(session)

    at_work(work)


@pytest.mark.slow
def test_a_file_that_another_is_built_on_counts_as_well(copy: Path, zygote: Zygote) -> None:
    course = load_course(copy)
    paths, names = (course.student_folder,), ("transformer_block",)
    request = CheckRequest(course, discover(paths, course), names, paths)

    def work(grader: Grader) -> None:
        session = Session(request, grader, 7)
        session.refresh()
        solve(copy, "layer_norm")
        assert session.refresh() == names

    with_grader(course, names, zygote, work)


def test_what_is_not_started_is_shown_before_there_is_a_grader(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy)
    course = load_course(copy)
    paths = (course.student_folder,)
    session = Session(CheckRequest(course, discover(paths, course), NAMES, paths), None, 7)
    session.begin()
    assert "0 of 3 exercises" in shown(session)
    assert "open exercises/masked_softmax.py: the task is at its top" in shown(session)
    assert session.refresh() == ()  # and nothing is graded later on
    session.press("l")
    assert shown(session).count("not started") == 3


@pytest.mark.slow
def test_work_that_was_begun_is_not_shown_before_it_is_graded(copy: Path) -> None:
    solve(copy, "masked_softmax")
    course = load_course(copy)
    paths = (course.student_folder,)
    session = Session(CheckRequest(course, discover(paths, course), NAMES, paths), None, 7)
    session.begin()
    assert not session.results


@pytest.mark.slow
@pytest.mark.parametrize("with_notebooks", [True, False])
def test_a_deleted_file_offers_to_write_the_stub_again(
    with_notebooks: bool, cli: Cli, copy: Path, at_work: AtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy)
    file = copy / "exercises" / "masked_softmax.py"
    if not with_notebooks:
        shutil.rmtree(copy / "exercises" / NOTEBOOKS)

    def work(session: Session) -> None:
        solve(copy, "masked_softmax")
        session.refresh()
        file.unlink()
        assert session.refresh() == ("masked_softmax",)
        assert "grader reset masked_softmax" in shown(session)
        assert cli("reset", "masked_softmax").code == 0
        session.refresh()
        assert "grader reset" not in shown(session)

    at_work(work)
    file.unlink()
    shutil.rmtree(copy / "exercises" / NOTEBOOKS, ignore_errors=True)
    said = cli("check", "masked_softmax")
    assert "masked_softmax.py is missing: `grader reset masked_softmax`" in " ".join(
        said.out.split()
    )


@pytest.mark.slow
def test_nothing_that_was_not_graded_counts_as_passed(copy: Path, at_work: AtWork) -> None:
    def interrupt(name: str, note: str = "") -> None:
        raise KeyboardInterrupt

    def work(session: Session) -> None:
        shutil.rmtree(copy / "exercises")
        session.refresh()
        for key in ("l", "n", "h", "l"):
            assert "passes" not in shown(session)
            session.press(key)
        assert not session.passed
        for name in NAMES:
            (copy / "exercises").mkdir(exist_ok=True)
            solve(copy, name)
        session.refresh()
        assert session.passed
        session.on_exercise = interrupt
        with pytest.raises(KeyboardInterrupt):
            session.refresh(everything=True)
        assert not session.passed

    at_work(work)


@pytest.mark.slow
def test_the_list_shows_every_exercise(at_work: AtWork) -> None:
    def work(session: Session) -> None:
        session.refresh()
        session.press("l")
        assert all(f"{name} 0 / " in shown(session) for name in NAMES)
        session.press("l")
        assert "next: Masked softmax" in shown(session)

    at_work(work)


@pytest.mark.slow
def test_a_file_that_is_just_being_replaced_is_waited_for(copy: Path, at_work: AtWork) -> None:
    def work(session: Session) -> None:
        session.refresh()
        shutil.rmtree(copy / "exercises")
        assert session.refresh() == ()
        assert "there is no file, folder or exercise" in shown(session)
        shutil.copytree(ROOT / "exercises", copy / "exercises")
        assert session.refresh() == ()
        assert "there is no file" not in shown(session)

    at_work(work)


@pytest.mark.slow
def test_a_small_terminal_keeps_the_keys(copy: Path, at_work: AtWork) -> None:
    def work(session: Session) -> None:
        solve(copy, "layer_norm", ("correction=0", "correction=1"))
        session.refresh()
        session.press("n")
        assert all(word in shown(session, 11) for word in KEYS.values())

    at_work(work)


# --- in a terminal --------------------------------------------------------------------------------


@pytest.fixture
def terminal(copy: Path) -> Iterator[Open]:
    with terminals_in(copy) as opening:
        yield opening


@pytest.mark.slow
def test_saves_and_keys_in_a_terminal(copy: Path, terminal: Open) -> None:
    opened = terminal("check", "--watch", "masked_softmax", "layer_norm")
    page = opened.until("open exercises/")
    assert "\x1b[?1049h" in page  # the student's own screen comes back
    solve(copy, "masked_softmax")
    assert "✓ Masked softmax: all" in opened.until("next: layer_norm")
    opened.press("h")
    opened.until("hint 1 of")
    opened.press("q")
    assert "\x1b[?1049l" in opened.until("1 of 2 exercises")
    assert opened.end() == 1


@pytest.mark.slow
def test_what_was_interrupted_is_graded_next(copy: Path, at_work: AtWork) -> None:
    def work(session: Session) -> None:
        def interrupt() -> None:
            raise Interrupted

        loop = "    while True:\n        pass\n"
        path = copy / "exercises/masked_softmax.py"
        path.write_text(f"def masked_softmax(X, valid_lens):\n{loop}")
        session.grader.workers.on_wait = interrupt
        begun = time.monotonic()
        with pytest.raises(Interrupted):
            session.refresh()
        session.grader.workers.on_wait = lambda: None
        assert time.monotonic() - begun < 4
        assert not session.passed
        solve(copy, "masked_softmax")
        assert "masked_softmax" in session.refresh()
        assert session.results["masked_softmax"].passed

    at_work(work)


@pytest.mark.slow
def test_an_endless_loop_does_not_block(copy: Path, terminal: Open) -> None:
    loop = "def masked_softmax(X, valid_lens):\n    while True:\n        pass\n"
    (copy / "exercises/masked_softmax.py").write_text(loop)
    opened = terminal("check", "--watch", "masked_softmax")
    opened.until("checking masked_softmax")
    time.sleep(1)
    begun = time.monotonic()
    opened.press("q")
    opened.until("0 of 1 exercises")
    assert time.monotonic() - begun < 4
    assert opened.end() == 1


@pytest.mark.slow
def test_a_signal_gives_the_screen_back(terminal: Open) -> None:
    opened = terminal("check", "--watch", "layer_norm")
    opened.until("quit")
    opened.run.send_signal(signal.SIGTERM)
    assert "\x1b[?25h\x1b[?1049l" in opened.until("0 of 1 exercises")
    assert opened.end() == 1


@pytest.mark.slow
def test_a_folder_that_is_replaced_is_still_watched(copy: Path, terminal: Open) -> None:
    opened = terminal("check", "--watch", "layer_norm", "exercises")
    opened.until("quit")
    shutil.copytree(copy / "exercises", copy / "after")
    time.sleep(0.5)  # and of what is saved before the folder is watched, it hears as well
    (copy / "exercises").rename(copy / "before")
    (copy / "after").rename(copy / "exercises")
    time.sleep(1)
    solve(copy, "layer_norm")
    opened.until("checks pass")
    opened.press("q")
    assert opened.end() == 0


@pytest.mark.slow
def test_ctrl_c_quits_and_gives_the_screen_back(terminal: Open) -> None:
    opened = terminal("check", "--watch", "layer_norm")
    opened.until("quit")
    opened.press("\x03")
    assert "\x1b[?25h\x1b[?1049l" in opened.until("0 of 1 exercises")
    assert opened.end() == 1


@pytest.mark.slow
def test_manual_takes_letters_and_enter(copy: Path) -> None:
    solve(copy, "layer_norm")
    command = ["-m", "grader", "check", "--watch", "--manual", "layer_norm"]
    done = run_warm([sys.executable, "-W", "ignore", *command], "\nl\nq\n", cwd=copy)
    assert done.code == 0, done.err
    assert "\x1b" not in done.out
    assert len(re.findall(r"1 of 1 exercises", done.out)) >= 3
    assert "13 / 13" in done.out


def test_watching_writes_no_files(cli: Cli) -> None:
    said = cli("check", "--watch", "--format", "json")
    assert said.code == 2
    assert "--watch is for the terminal" in said.err
    said = cli("check", "--watch", "work.zip")
    assert said.code == 2


def test_a_key_without_a_letter_is_not_taken_for_one_with(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    tty.setcbreak(theirs)
    monkeypatch.setattr(keyboard, "KEYS", theirs)
    for home in (b"\x1b[H", b"\x1bOH", b"\x1b[1~"):
        os.write(ours, home)
        assert read_key(5) is None
    os.write(ours, b"hq")
    assert [read_key(5), read_key(5), read_key(0)] == ["h", "q", None]
    os.close(theirs)
    os.close(ours)
