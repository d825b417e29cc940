"""The first screen of a class: what to teach again, and what nobody has begun."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from class_lists import batch
from classroom import Instant, hand_in
from commandline import Cli
from test_statistics import exercise, report

from grader.classroom.statistics import ClassTally
from grader.report import Diagnosis, ExerciseResult, Report, WrongCase
from grader.reports import dashboard
from grader.reports.summary import Summary


def counted(*reports: Report) -> Summary:
    tally = ClassTally()
    for each in reports:
        tally.add(each, f"reports/{each.submission}.html")
    return tally.summary("A class")


def words(page: str) -> str:
    """What a page says, without its tags."""
    body = page.partition("<main>")[2].partition('<script type="application/json"')[0]
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def wrong(name: str, fault: str, cost: int, worth: int = 2) -> ExerciseResult:
    """An exercise of three checks, the first of which fails by a named mistake."""
    diagnosis = Diagnosis((fault,), "", "", (("test_0",),), (f"{fault}.",), (cost,))
    return exercise("-++", worth, name, diagnosis=diagnosis)


def test_what_was_not_begun_is_counted_apart_from_mistakes() -> None:
    untouched = [
        report(f"s{at:03}", wrong("one", "A slip", 2), exercise("---", name="two", unfinished=True))
        for at in (1, 2, 3)
    ]
    done = report("s004", exercise("+++"), exercise("+++", name="two"))
    said = words(dashboard.render(counted(*untouched, done)))
    # Three students leave `two`, of 6 points, untouched; the slip costs each of them 2.
    assert "Not begun, and apart from these: 3 exercises of 3 students, 18 points." in said
    assert "by points 6 points A slip. One 3 students" in said
    # 1 of 4 passes each exercise; in `one` the others are wrong, in `two` they have not begun.
    assert "One : who does not pass 25 % 75 % 0 %" in said
    assert "Two : who does not pass 25 % 0 % 75 %" in said


def test_the_dearest_and_the_most_frequent_mistake_stand_side_by_side() -> None:
    dear = [report("s001", wrong("one", "Dear", 9, worth=9))]
    often = [report(f"s00{at}", wrong("two", "Often", 2)) for at in (2, 3, 4)]
    said = words(dashboard.render(counted(*dear, *often)))
    assert "by points 9 points Dear. One 1 student : Dear in One , 25 %" in said
    assert "by students 3 students : Often in Two Often. Two 75 %, 6 points" in said


def test_where_every_mistake_is_single_the_exercises_are_shown() -> None:
    names = ("one", "two", "two")
    reports = [report(f"s00{at}", wrong(name, f"Slip {at}", 2)) for at, name in enumerate(names, 1)]
    said = words(dashboard.render(counted(*reports)))
    assert "Every mistake was made by one student only. These exercises cost most:" in said
    assert "4 points Two 2 students : Two, who does not pass , 67 %" in said
    assert "What costs the class most by points" not in said


def test_a_check_that_good_students_fail_alone_shows_with_its_case() -> None:
    """Four fail only the first check, by the same case; one fails everything."""
    cases = (WrongCase("a", "An empty input."), WrongCase("b", "One row."))

    def failing(verdicts: str, count: int) -> ExerciseResult:
        made = exercise(verdicts)
        first = replace(made.tests[0], wrong=cases[:count])
        return replace(made, tests=(first, *made.tests[1:]))

    reports = [report(f"s00{at}", failing("-++", 1)) for at in (1, 2, 3, 4)]
    reports += [report("s005", failing("---", 2)), report("s006", exercise("+++"))]
    summary = counted(*reports)
    first, second, _ = summary.exercises[0].tests
    assert (first.failed, first.alone, second.failed, second.alone) == (5, 4, 1, 0)
    assert first.cases == (("An empty input.", 5), ("One row.", 1))
    said = words(dashboard.render(summary))
    assert "Of the wrong ones, 4 fail 1 check, 1 fails 3 checks." in said
    assert "An empty input. 5 One row. 1" in said


def test_the_page_of_a_graded_class_parts_wrong_from_not_handed_in(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 5 points" for n in (1, 2)})
    hand_in(tmp_path / "class", {"s002/shift.py": "# 2 points"})
    batch(cli, tmp_path, pair)
    said = words((tmp_path / "out" / "index.html").read_text())
    says = "Not handed in, or not graded, and apart from these: 1 exercise of 1 student, 2 points."
    assert says in said
    assert "Scale : who does not pass 0 % 100 % 0 %" in said
    assert "Shift : who does not pass 50 % 0 % 50 %" in said


def test_an_exercise_that_is_left_for_later_is_not_graded_rather_than_not_begun(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    texts = {"s001/scale.py": "# 8 points", "s001/shift.py": "# 2 points"}
    hand_in(tmp_path / "class", texts)
    batch(cli, tmp_path, pair, "--without", "shift")
    said = words((tmp_path / "out" / "index.html").read_text())
    assert "Scale : who does not pass 100 % 0 % 0 %" in said
    assert "Shift : who does not pass not graded" in said
    assert "Shift not graded 1 not graded. No check ran." in said  # and not 0 % in the list
