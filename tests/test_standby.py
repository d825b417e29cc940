"""A notebook's next check has started before it is ordered, and gives the verdict of any check."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from classroom import running, waits
from commandline import Cli
from warm import warm_popen

from grader.commands import standby, standby_process
from grader.commands.standby_process import CheckOrder, Standby
from grader.course.course import Course


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[Any]]:
    """The processes that a notebook starts, in order."""
    processes: list[subprocess.Popen[Any]] = []

    def start(*given: Any, **more: Any) -> subprocess.Popen[Any]:
        processes.append(warm_popen()(*given, **more))
        return processes[-1]

    monkeypatch.setattr(standby_process.subprocess, "Popen", start)
    return processes


@pytest.fixture
def notebook(started: list[subprocess.Popen[Any]]) -> Iterator[Standby]:
    yield Standby()
    for process in started:
        with process:
            process.terminate()


@pytest.fixture
def order(tiny_course: Course, tmp_path: Path) -> Callable[[str], CheckOrder]:
    """Order a check of a text for `scale`."""

    def make(text: str) -> CheckOrder:
        (tmp_path / "scale.py").write_text(text)
        page = str(tmp_path / "report.html")
        return CheckOrder(str(tiny_course.root), str(tmp_path / "notebook.ipynb"), "scale", page, 5)

    return make


def others(lines: Iterable[str], exercise: str) -> str:
    return "".join(lines)


def test_one_process_starts_before_it_is_ordered_anything_and_makes_all_checks(
    notebook: Standby,
    started: list[subprocess.Popen[Any]],
    order: Callable[[str], CheckOrder],
    tiny_course: Course,
) -> None:
    notebook.prepare()
    notebook.prepare()  # which starts nothing twice
    assert len(started) == 1
    right = tiny_course["scale"].read("solution.py")
    for text, code in ((right, 0), ("print('loud')\nraise SystemExit(7)", 1), (right, 0)):
        assert notebook.check(order(text), others)[0] == code
    assert len(started) == 1
    assert running(started[0].pid)


def test_its_verdict_is_that_of_grader_check(
    notebook: Standby,
    order: Callable[[str], CheckOrder],
    tiny_course: Course,
    cli: Cli,
) -> None:
    solution = tiny_course["scale"].read("solution.py")
    for text in (solution, solution.replace("*", "+"), "def scale(:"):
        ordered = order(text)
        where = (
            Path(ordered.notebook).parent,
            "scale",
            "--course",
            tiny_course.root,
            "--seed",
            5,
            "--all",
        )
        expected = cli("check", *where, "--also", f"html={ordered.page}")
        page = Path(ordered.page).read_text("utf-8")
        assert notebook.check(ordered, others) == (expected.code, expected.out)
        assert Path(ordered.page).read_text("utf-8") == page


def test_a_check_that_cannot_be_done_says_why(
    notebook: Standby, order: Callable[[str], CheckOrder], tmp_path: Path
) -> None:
    ordered = order("")
    (tmp_path / "scale.py").unlink()
    code, said = notebook.check(ordered, others)
    assert code == 2
    assert said.startswith("grader: ")


def test_a_process_that_was_interrupted_while_it_waited_costs_nothing(
    notebook: Standby,
    started: list[subprocess.Popen[Any]],
    order: Callable[[str], CheckOrder],
    tiny_course: Course,
) -> None:
    notebook.prepare()
    os.kill(started[0].pid, signal.SIGKILL)
    assert waits(lambda: not running(started[0].pid))
    assert notebook.check(order(tiny_course["scale"].read("solution.py")), others)[0] == 0


def test_a_process_of_another_environment_is_replaced(
    notebook: Standby, started: list[subprocess.Popen[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.prepare()
    monkeypatch.setenv("GRADER_COURSE_LIST", "full")
    notebook.prepare()
    assert len(started) == 2
    assert not running(started[0].pid)


def test_ctrl_c_ends_the_check_at_once(
    notebook: Standby,
    started: list[subprocess.Popen[Any]],
    order: Callable[[str], CheckOrder],
) -> None:
    def interrupted(lines: Iterable[str], exercise: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        notebook.check(order("while True: pass"), interrupted)
    assert not running(started[0].pid)


def test_a_verdict_is_told_even_if_no_next_process_can_start(
    notebook: Standby,
    order: Callable[[str], CheckOrder],
    tiny_course: Course,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*given: Any, **more: Any) -> None:
        raise OSError("no more processes")

    ordered = order("")
    Path(ordered.notebook).with_name("scale.py").unlink()  # which ends the process
    notebook.prepare()
    monkeypatch.setattr(standby_process.subprocess, "Popen", fail)
    assert notebook.check(ordered, others)[0] == 2
    with pytest.raises(OSError, match="no more processes"):
        notebook.check(ordered, others)


def test_a_check_that_ends_without_a_word_has_not_passed(
    order: Callable[[str], CheckOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    notebook = Standby()
    code, said = notebook.check(order(""), others)
    assert (code, said) == (3, "the check has ended with code 0, without a verdict")


def test_it_waits_for_an_order_no_longer_than_a_while(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, writes = os.pipe()
    monkeypatch.setattr(standby, "IDLE_SECONDS", 0.01)
    with open(reads) as nothing, open(writes, "w"):
        monkeypatch.setattr(sys, "stdin", nothing)
        said = cli("standby")
        assert (said.code, said.out, said.err) == (0, "", "")


def test_it_ends_with_its_notebook(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as ended:
        monkeypatch.setattr(sys, "stdin", ended)
        said = cli("standby")
    assert (said.code, said.out, said.err) == (0, "", "")
