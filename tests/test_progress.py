"""How far a run is: rate, time left and what runs now, and a log that programs read."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from classroom import TINY, Instant, events, hand_in
from commandline import Cli

from grader.classroom.run import Event
from grader.commands.progress import EVERY, ProgressDisplay
from grader.report import Mark, Report


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def report(student: str, points: float = 3, *flags: str) -> Report:
    return Report(student, 5, "hidden", (), (), flags=flags, mark=Mark(points, 8, points))


def grade(display: ProgressDisplay, *students: str, seconds: float = 2.0) -> None:
    for student in students:
        display.show(Event("started", student, names=("scale",)))
        display.show(Event("graded", student, "hash", ("scale",), seconds))
        display.show(Event("published", student, report=report(student)))


def test_before_anything_is_handed_out_it_warms_up(clock: Clock) -> None:
    display = ProgressDisplay(40, None, None, clock)
    clock.now = 30.0
    assert display.line() == "0 of 40, warming up"


def test_rate_and_time_left_count_from_the_first_that_is_handed_out(clock: Clock) -> None:
    display = ProgressDisplay(40, None, None, clock)
    clock.now = 30.0  # the warming up, which is no rate
    display.show(Event("started", "s001", names=("scale",)))
    assert display.line() == "0 of 40 · 0.0 a second · now s001"
    clock.now = 32.0
    grade(display, "s001", "s002", "s003", "s004")
    assert display.line() == "4 of 40 · 2.0 a second, 18 s left"
    clock.now = 34.0
    assert display.line() == "4 of 40 · 1.0 a second, 36 s left"


def test_the_clock_starts_once_wherever_it_stands(clock: Clock) -> None:
    display = ProgressDisplay(10, None, None, clock)
    display.show(Event("started", "s001", names=("scale",)))
    clock.now = 2.0
    grade(display, "s001", "s002")
    assert display.line() == "2 of 10 · 1.0 a second, 8 s left"


def test_what_waited_for_the_warming_up_makes_no_rate(clock: Clock) -> None:
    display = ProgressDisplay(10, None, None, clock)
    display.show(Event("started", "s001", names=("scale",)))
    clock.now = 30.0
    grade(display, "s001", seconds=0.5)
    assert display.line() == "1 of 10 · 2.0 a second, 4 s left"
    clock.now = 31.5
    assert display.line() == "1 of 10 · 0.5 a second, 18 s left"


def test_a_regrade_counts_what_is_graded(clock: Clock) -> None:
    display = ProgressDisplay(None, None, None, clock)
    grade(display, "s001", "s002")
    clock.now = 2.0
    display.show(Event("started", "s003", names=("scale",)))
    assert display.line() == "2 graded · 1.0 a second · now s003"


def test_what_an_earlier_run_has_graded_is_done_but_makes_no_rate(clock: Clock) -> None:
    display = ProgressDisplay(40, None, None, clock)
    for number in range(30):
        display.show(Event("published", f"s{number}", report=report(f"s{number}")))
    clock.now = 10.0
    assert display.line() == "30 of 40, warming up"
    display.show(Event("started", "s030", names=("scale",)))
    assert display.line() == "30 of 40 · 0.0 a second · now s030"
    clock.now = 14.0
    grade(display, "s030", "s031")
    assert display.line() == "32 of 40 · 1.0 a second, 8 s left"


@pytest.mark.parametrize(
    ("total", "says"),
    [(31, "60 s"), (45, "88 s"), (46, "2 min"), (1801, "60 min"), (2701, "1.5 h"), (7201, "4.0 h")],
)
def test_time_left_is_said_as_people_say_it(total: int, says: str, clock: Clock) -> None:
    display = ProgressDisplay(total, None, None, clock)
    display.show(Event("started", "s001", names=("scale",)))
    clock.now = 2.0
    grade(display, "s001")
    assert display.line() == f"1 of {total} · 0.5 a second, {says} left"


def test_what_runs_now_is_named_but_not_a_whole_cluster_of_it(clock: Clock) -> None:
    display = ProgressDisplay(40, None, None, clock)
    for number in range(1, 6):
        display.show(Event("started", f"s00{number}", names=("scale",)))
    assert display.line().endswith(" · now s001, s002, s003")
    display.show(Event("graded", "s002", "hash", ("scale",), 0.5))
    assert display.line().endswith(" · now s001, s003, s004")
    display.show(Event("lost", "s001", "hash", ("scale",), why="it ended"))
    assert display.line().endswith(" · now s003, s004, s005")


def test_without_a_terminal_there_is_a_line_every_few_seconds(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    display = ProgressDisplay(40, None, None, clock)
    with display.shown():
        for second in range(21):
            clock.now = float(second)
            grade(display, f"s0{second:02}")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 20 // EVERY
    assert lines[0] == "  5 of 40 · 1.0 a second, 35 s left · now s005"
    assert lines[-1].startswith("  20 of 40 · 1.0 a second, 20 s left")


def test_a_lost_exercise_is_said_at_once(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay(40, None, None, clock)
    display.show(Event("lost", "s001", "hash", ("scale", "shift"), why="its process ended"))
    display.show(Event("gave up", "s001", "hash", ("scale",), why="its process ended"))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "  s001 (scale, shift): its process ended; trying again, one exercise at a time",
        "  s001 (scale): its process ended; needs review; the others go on",
    ]


def test_a_line_a_report_unless_it_is_to_be_quiet(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    grade(ProgressDisplay(40, lambda one: f"of {one.submission}", None, clock), "s001", "s002")
    assert capsys.readouterr().out == "of s001\nof s002\n"
    grade(ProgressDisplay(40, None, None, clock), "s001", "s002")
    assert capsys.readouterr().out == ""


def test_the_log_is_a_json_object_a_line_written_at_once(clock: Clock) -> None:
    log = io.StringIO()
    display = ProgressDisplay(2, None, log, clock)
    display.show(Event("started", "sé01", names=("scale", "shift")))
    assert log.getvalue().endswith("\n")
    display.show(Event("lost", "sé01", "hash", ("scale",), why="its process ended"))
    display.show(Event("graded", "sé01", "hash", ("scale",), 0.123456))
    display.show(Event("published", "sé01", report=report("sé01", 2.5, "look at it")))
    told = [json.loads(line) for line in log.getvalue().splitlines()]
    assert all(entry.pop("at").endswith("+00:00") for entry in told)
    who = {"student": "sé01"}
    assert told == [
        {"event": "started", **who, "exercises": ["scale", "shift"]},
        {"event": "lost", **who, "exercises": ["scale"], "why": "its process ended"},
        {"event": "graded", **who, "exercises": ["scale"], "seconds": 0.1235},
        {"event": "published", **who, "points": 2.5, "flags": ["look at it"]},
    ]


def test_a_runs_log_tells_its_whole_story_and_the_next_run_adds_to_it(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = {f"s00{n}/scale.py": f"# {n} points" for n in (1, 2)}
    hand_in(tmp_path / "class", texts | {"s003/notes.txt": ""})
    log = tmp_path / "log.jsonl"
    command = ("batch", tmp_path / "class", "--out", tmp_path / "out", "--log", log, "--quiet")
    said = cli(*command, "--course", TINY)
    assert [line.split()[0] for line in said.out.split("\n") if line.startswith("  s00")] == []
    told = [(entry["event"], entry["student"]) for entry in events(log)]
    assert told == [
        ("published", "s003"),
        ("started", "s001"),
        ("started", "s002"),
        ("graded", "s001"),
        ("published", "s001"),
        ("graded", "s002"),
        ("published", "s002"),
    ]
    cli(*command, "--course", TINY)
    again = [(entry["event"], entry["student"]) for entry in events(log)][len(told) :]
    assert again == [("published", f"s00{n}") for n in (1, 2, 3)]
