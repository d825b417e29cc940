"""`grader validate --watch`: what is left to do in the content, after every save."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from commandline import Cli
from terminals import Open, terminals_in

from grader.commands.to_do import KEYS, ToDoList, screen
from grader.course.course import load_course
from grader.errors import CourseError


@pytest.fixture
def terminal(tiny_copy: Path) -> Iterator[Open]:
    with terminals_in(tiny_copy) as opening:
        yield opening


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.mark.slow
def test_what_is_left_to_do_follows_every_save(tiny_copy: Path, terminal: Open) -> None:
    folder = tiny_copy / "reference" / "scale"
    opened = terminal("validate", "--watch", "scale")
    page = opened.until("✓ scale")
    assert "\x1b[?1049h" in page  # the author's own screen comes back
    assert "proving scale" in page
    change(folder / "exercise.toml", '"x times factor."', '" "')
    assert "1 problem" in opened.until("needs 3 hints, none empty")
    change(folder / "exercise.toml", '" "', '"x times factor."')
    change(folder / "mistakes.toml", '"Use an operator."', '" "')
    opened.until("torch_multiplies: its `hint` is")
    (folder / "mistakes.toml").write_text("[capped")
    opened.until("valid TOML")
    opened.press("q")
    assert "\x1b[?1049l" in opened.until("0 of 1 exercises")
    assert opened.end() == 1


@pytest.mark.slow
def test_a_course_without_problems_ends_well(terminal: Open) -> None:
    opened = terminal("validate", "--watch")
    opened.until("✓ scale")
    opened.press("r")
    opened.until("proving scale")
    opened.until("✓ scale")
    opened.press("q")
    opened.until("1 of 1 exercises have nothing left to do")
    assert opened.end() == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_quits_and_gives_the_screen_back(terminal: Open, number: signal.Signals) -> None:
    opened = terminal("validate", "--watch", "scale")
    opened.until("quit")
    if number == signal.SIGINT:
        opened.press("\x03")
    else:
        opened.run.send_signal(number)
    assert "\x1b[?25h\x1b[?1049l" in opened.until("exercises have nothing left to do")
    opened.end()


@pytest.mark.slow
def test_q_does_not_wait_for_the_proof(tiny_copy: Path, terminal: Open) -> None:
    solution = tiny_copy / "reference" / "scale" / "solution.py"
    solution.write_text(solution.read_text() + "\nimport time\n\ntime.sleep(2)\n")
    opened = terminal("validate", "--watch", "scale")
    opened.until("proving scale")
    opened.press("q")
    assert "✓" not in opened.until("0 of 1 exercises have nothing")
    assert opened.end() == 1


def test_only_exercises_whose_files_changed_are_proven_again(pair: Path) -> None:
    course, proven = load_course(pair), list[str]()
    problems = {"scale": ["reference/scale/mistakes.toml: no_effect: its `hint` is empty"]}

    def find(name: str, on_wait: object) -> list[str]:
        return problems.get(name, [])

    def refresh() -> list[str]:
        proven.clear()
        to_do.refresh(proven.append, lambda: None)
        return proven

    to_do = ToDoList(course, course.names, find)
    assert refresh() == list(course.names)
    assert refresh() == []
    last = course.names[-1]
    change(course[last].folder / "exercise.toml", "order = ", "order =  ")
    assert refresh() == [last]
    assert not to_do.is_done
    problems.clear()
    to_do.forget()
    assert refresh() == list(course.names)
    assert to_do.is_done


def test_what_was_interrupted_is_proven_next_and_errors_are_problems(tiny_copy: Path) -> None:
    course = load_course(tiny_copy)
    raised: list[BaseException | None] = [
        None,
        KeyboardInterrupt(),
        CourseError("mistakes.toml is wrong"),
        SyntaxError("half written"),
    ]

    def find(name: str, on_wait: object) -> list[str]:
        if error := raised.pop(0):
            raise error
        return []

    to_do = ToDoList(course, course.names, find)
    to_do.refresh(lambda name: None, lambda: None)
    assert to_do.is_done
    to_do.forget()
    with pytest.raises(KeyboardInterrupt):
        to_do.refresh(lambda name: None, lambda: None)
    assert not to_do.is_done
    to_do.refresh(lambda name: None, lambda: None)
    assert to_do.problems == {"scale": ["mistakes.toml is wrong"]}
    to_do.forget()
    to_do.refresh(lambda name: None, lambda: None)
    assert to_do.problems == {"scale": ["scale: SyntaxError: half written"]}


def test_the_list_fits_on_the_screen_and_keeps_the_keys(tiny_copy: Path) -> None:
    many = [
        f"reference/scale/mistakes.toml: fault_{n}: {'its hint is empty ' * 9}" for n in range(9)
    ]
    to_do = ToDoList(load_course(tiny_copy), ("scale",), lambda name, wait: many)
    to_do.refresh(lambda name: None, lambda: None)
    lines = click.unstyle(screen(to_do, 12)).splitlines()
    assert len(lines) == 12
    assert max(map(len, lines)) < 80
    assert "more lines" in lines[-3]
    assert all(word in lines[-1] for word in KEYS.values())


def test_watching_needs_a_terminal(cli: Cli, tiny_copy: Path) -> None:
    said = cli("validate", "--watch", "--course", tiny_copy)
    assert said.code == 2
    assert "--watch is for the terminal" in said.err
