"""What is published changes only with a word, and every change can be explained."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from classroom import TINY, Instant, hand_in, marks, report_of, rows
from commandline import Cli, Said
from regrading import touch

from grader.classroom import intake
from grader.course.course import Course
from grader.submissions.layouts import Attempt
from grader.submissions.submission import Submission

DUE = 'title = "A pair"\npoints = 10\ndue = 2026-11-08T20:00:00+01:00\n[late]\nper_day = 25\n'
LATE = "id,name,submitted,due\ns001,One,2026-11-09T12:00:00+01:00,\ns002,Two,,\ns003,Three,,\n"
EXTENDED = LATE.replace("+01:00,\n", "+01:00,2026-11-10T20:00:00+01:00\n", 1)


@pytest.fixture
def place(tmp_path: Path, pair: Path) -> Path:
    """A class of three, of a course with a due date."""
    (pair / "reference" / "course.toml").write_text(DUE)
    for number in (1, 2, 3):
        text = f"# {number + 3} points"
        hand_in(tmp_path / "class", {f"s00{number}/scale.py": text, f"s00{number}/shift.py": text})
    return tmp_path


def run(cli: Cli, place: Path, pair: Path, *more: object) -> Said:
    return cli("batch", place / "class", "--out", place / "out", "--course", pair, *more)


def ask(cli: Cli, place: Path, pair: Path, *what: object) -> Said:
    return cli(*what, "--in", place / "out", "--course", pair)


def roster(place: Path, text: str) -> Path:
    path = place / "class.csv"
    path.write_text(text)
    return path


def everything(place: Path) -> dict[str, bytes]:
    """All pages, as bytes."""
    pages = (path for path in (place / "out").rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in pages if "ledger" not in path.name}


# --- a folder of results remembers what it was made with ------------------------------------------


def test_the_same_command_without_the_roster_changes_nothing(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair, "--roster", roster(place, EXTENDED))
    before = everything(place)
    said = run(cli, place, pair)
    assert said.code == 1
    assert everything(place) == before
    assert report_of(place / "out", "s001")["person"]["name"] == "One"


def test_taking_the_roster_away_goes_through_the_gate(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair, "--roster", roster(place, LATE))
    late = marks(place / "out")["s001"]
    before = everything(place)
    said = run(cli, place, pair, "--no-roster")
    assert said.code == 2
    assert f"s001: {late} → 8 of 10 points" in said.err
    assert "--replace" in said.err
    assert everything(place) == before
    assert run(cli, place, pair, "--no-roster", "--replace").code == 1
    assert marks(place / "out")["s001"] == "8" != late
    run(cli, place, pair)  # and it stays away
    assert marks(place / "out")["s001"] == "8"


def test_another_roster_that_changes_a_mark_is_listed_first(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair, "--roster", roster(place, EXTENDED))
    said = run(cli, place, pair, "--roster", roster(place, LATE))
    assert (said.code, "s001 (One): 8 → 6 of 10 points" in said.err) == (2, True)
    run(cli, place, pair)  # the roster that was refused is not remembered
    assert marks(place / "out")["s001"] == "8"


def test_one_more_attempt_hides_no_change_of_the_one_that_counts(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    (pair / "reference" / "course.toml").write_text(DUE)
    hand_in(tmp_path / "class", {"onetwo_7_10_scale.py": "# 5 points"})
    late = "id,submitted,due\n7,2026-11-09T12:00:00+01:00,\n"
    first = "--attempt", "first", "--roster"
    run(cli, tmp_path, pair, *first, roster(tmp_path, late))
    before = marks(tmp_path / "out")["7"]
    hand_in(tmp_path / "class", {"onetwo_7_11_scale-1.py": "# 5 points, again"})
    longer = late.replace("+01:00,\n", "+01:00,2026-11-10T20:00:00+01:00\n")
    said = run(cli, tmp_path, pair, *first, roster(tmp_path, longer))
    assert said.code == 2, said.out
    assert f"{before} → 5 of 10 points" in said.err


def test_a_roster_and_none_at_once_are_refused(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    said = run(cli, place, pair, "--roster", roster(place, LATE), "--no-roster")
    assert (said.code, "say two things" in said.err) == (2, True)


@pytest.mark.slow
def test_another_choice_of_the_attempt_is_remembered_only_if_it_is_taken(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    names = "onetwo_7_{}_scale.py", "onetwo_7_{}_scale-1.py"
    for number, name in enumerate(names):
        hand_in(tmp_path / "class", {name.format(10 + number): f"# {7 - 4 * number} points"})
    hand_in(tmp_path / "class", {"threefour_8_20_scale.py": "# 5 points"})
    command = "batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY
    cli(*command)
    assert marks(tmp_path / "out") == {"7": "3", "8": "5"}
    said = cli(*command, "--attempt", "best")
    why = "7 (onetwo): another attempt may count, not graded yet"
    assert (said.code, why in said.err) == (2, True), said.err
    assert cli(*command).code == 1  # the choice was not kept
    assert cli(*command, "--attempt", "best", "--replace").code == 1
    assert marks(tmp_path / "out") == {"7": "7", "8": "5"}
    cli(*command)  # it is now
    assert marks(tmp_path / "out") == {"7": "7", "8": "5"}


def test_details_wait_for_the_end_of_an_extension(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    (pair / "reference" / "course.toml").write_text(f'{DUE}[show]\ntests = "after_due"\n')
    future = "id,due\ns001,2099-01-01T00:00:00+01:00\ns002,\ns003,\n"
    run(cli, place, pair, "--roster", roster(place, future))
    later = "the course shows the details after the due date"
    assert later in (place / "out" / "reports" / "s001.html").read_text()
    assert later not in (place / "out" / "reports" / "s002.html").read_text()


# --- the set of students --------------------------------------------------------------------------


def test_another_class_in_the_same_folder_is_refused_with_a_list(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair)
    before = everything(place)
    for student in ("s002", "s003"):
        shutil.rmtree(place / "class" / student)
    said = run(cli, place, pair)
    assert said.code == 2
    assert "2 published marks would change or go, so nothing was taken in" in said.err
    assert "s002: handed in nothing any more" in said.err
    assert everything(place) == before


def test_reports_of_students_who_are_gone_go_with_them(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair)
    shutil.rmtree(place / "class" / "s002")
    run(cli, place, pair, "--replace")
    assert set(marks(place / "out")) == {"s001", "s003"}
    assert not list((place / "out").rglob("*s002*"))
    said = ask(cli, place, pair, "history", "s002")
    assert "gone: handed in nothing any more" in said.out


def test_whoever_cannot_be_read_again_keeps_the_mark_and_is_named(
    cli: Cli, instant: Instant, place: Path, pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(cli, place, pair)
    before = marks(place / "out")
    hand_in(place / "class", {"s003/scale.py": "# 1 points", "s003/shift.py": "# 1 points"})
    real = intake.collect

    def collect(attempt: Attempt, course: Course) -> Submission:
        if attempt.student != "s001":
            raise ValueError("out of luck")
        return real(attempt, course)

    for more in ([], ["--replace"]):
        with monkeypatch.context() as patched:
            patched.setattr(intake, "collect", collect)
            said = run(cli, place, pair, *more)
        for name in ("s002", "s003"):
            assert f"{name}: the grader failed here (ValueError: out of luck)" in said.err
        assert marks(place / "out") == before
    assert run(cli, place, pair, "--replace").code == 1
    assert marks(place / "out") == {**before, "s003": "2"}


def test_an_addition_needs_no_word(cli: Cli, instant: Instant, place: Path, pair: Path) -> None:
    run(cli, place, pair)
    hand_in(place / "class", {"s004/scale.py": "# 1 points"})
    said = run(cli, place, pair)
    assert said.code == 1
    assert set(marks(place / "out")) == {"s001", "s002", "s003", "s004"}


@pytest.mark.slow
def test_other_files_are_listed_unless_they_were_handed_in_later(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    time = "id,submitted\ns001,2026-11-0{}T12:00:00+01:00\ns002,\ns003,\n"
    run(cli, place, pair, "--roster", roster(place, time.format(7)))
    for student in ("s001", "s002"):
        hand_in(place / "class", {f"{student}/scale.py": f"# 0 points, {student}"})
    said = run(cli, place, pair, "--roster", roster(place, time.format(8)))
    assert said.code == 2
    assert "s002: other files, and nothing says that they were handed in later" in said.err
    assert "s001" not in said.err
    run(cli, place, pair, "--roster", roster(place, time.format(8)), "--replace")
    assert report_of(place / "out", "s001")["mark"]["earned"] == 4


# --- history and explanation ----------------------------------------------------------------------


@pytest.mark.slow
def test_every_change_of_a_mark_is_in_the_history(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair)
    ask(cli, place, pair, "adjust", "s001", "scale", "+1", "--why", "a sign")
    hand_in(place / "class", {"s001/scale.py": "# 7 points, again"})
    run(cli, place, pair, "--replace")
    run(cli, place, pair, "--roster", roster(place, LATE), "--replace")
    suite = pair / "reference" / "shift" / "test_hidden.py"
    suite.write_text(suite.read_text() + "\n# changed\n")
    instant.points = {"shift": 1}
    ask(cli, place, pair, "regrade", "--publish")
    said = [
        line.split("  ", 3)[-1]
        for line in ask(cli, place, pair, "history", "s001").out.splitlines()
    ]
    wanted = [
        "new → 8 of 10: graded for the first time",
        "adjustment: scale +1: a sign",
        "8 → 9 of 10: adjusted (scale +1)",
        "replaced: other files, and nothing says that they were handed in later",
        "9 → 12 of 10: attempt 1 counts, with other files than before (scale +3)",
        "the class  roster: the roster class.csv: 3 students, 0 with a due date of their own",
        "replaced: ",
        "12 → 9 of 10: the roster class.csv: 3 students",
        "the class  rules: regraded after a change of the grading of shift",
        "9 → 6.75 of 10: regraded (shift −3)",
    ]
    for part in wanted:
        assert any(part.split("  ")[-1] in line for line in said), (part, said)


@pytest.mark.slow
def test_a_mark_is_explained_from_the_files_to_the_export(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair, "--roster", roster(place, LATE))
    ask(cli, place, pair, "adjust", "s001", "scale", "+1", "--why", "a sign", "--yes")
    ask(cli, place, pair, "adjust", "s001", "--final", "-0.5", "--why", "late twice")
    said = ask(cli, place, pair, "explain", "s001").out
    for part in (
        "s001 (One)",
        "9 Nov 2026, 12:00",
        "scale.py, shift.py",
        rows(place / "out", "SELECT hash FROM attempts WHERE student = 's001'")[0][0],
        "8 Nov 2026, 20:00 (the course's); 16 hours late",
        "adjusted    +1 = 5: a sign",
        "16 hours late (as 1 day): 75 % count",
        "adjusted: late twice",
        "exported    6.25",
        "grader regrade --again s001",
    ):
        assert part in said, part
    assert marks(place / "out")["s001"] == "6.25"
    one = ask(cli, place, pair, "explain", "s001", "shift").out
    assert "4/2  All of it." in one
    assert "exported" not in one


@pytest.mark.slow
def test_of_a_mark_that_was_graded_under_other_rules_what_is_published_is_said(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair)
    touch(pair, "shift")
    said = ask(cli, place, pair, "explain", "s001")
    assert (said.code, said.err) == (0, "")
    assert "not graded yet" not in said.out
    points = marks(place / "out")["s001"]
    for part in (f"published   {points} of 10", "changed since: the grading of shift"):
        assert part in said.out, part
    assert f"grader regrade --in {place / 'out'}" in said.out
    one = ask(cli, place, pair, "explain", "s001", "scale").out
    assert "scale: " in one
    assert "shift: " not in one
    adjusted = ask(cli, place, pair, "adjust", "s001", "scale", "+1", "--why", "a sign", "--yes")
    assert "not graded yet" not in adjusted.out
    assert f"the published mark is still {points} of 10" in adjusted.out


def test_nobody_of_that_name_has_a_history_or_an_explanation(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair)
    for command in ("history", "explain"):
        said = ask(cli, place, pair, command, "s0001")
        assert (said.code, "did you mean `s001`?" in said.err) == (2, True)


# --- adjustments ----------------------------------------------------------------------------------


def test_the_effect_of_an_adjustment_is_shown(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair, "--roster", roster(place, LATE))
    said = ask(cli, place, pair, "adjust", "s002", "scale", "+2", "--why", "kind").out
    assert "s002 (Two): scale +2, 5 → 7 of 8 points there; mark 10 → 12 of 10" in said
    said = ask(cli, place, pair, "adjust", "s001", "--final", "+1", "--why", "ill").out
    assert "s001 (One): the mark +1, counts in the mark itself; mark 6 → 7 of 10" in said


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (("scale", "+9"), "s001 would get 13 of 8 points in scale"),
        (("scale", "-5"), "s001 would get -1 of 8 points in scale"),
        (("--final", "+99"), "of 10 points"),
        (("--final", "-99"), "a mark below 0"),
    ],
)
def test_an_adjustment_beyond_the_range_needs_force(
    what: tuple[str, ...], why: str, cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair)
    said = ask(cli, place, pair, "adjust", "s001", *what, "--why", "x")
    assert (said.code, why in said.err, "--force" in said.err) == (2, True, True)
    assert rows(place / "out", "SELECT * FROM adjustments") == []
    assert ask(cli, place, pair, "adjust", "s001", *what, "--why", "x", "--force").code == 0


def test_many_adjustments_come_from_a_file_all_or_none(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    run(cli, place, pair)
    file = place / "adjustments.csv"
    file.write_text("student;exercise;points;why\ns001;scale;1;kind\ns002;final;-1;late\n")
    assert ask(cli, place, pair, "adjust", "--file", file).code == 0
    assert marks(place / "out") == {"s001": "9", "s002": "9", "s003": "12"}
    for line, problem in (
        ("s001;scale;two;x", "adjustments.csv:3: two is not a number"),
        ("s001;scael;1;x", "no exercise `scael`"),
        ("s0001;scale;1;x", "nobody called `s0001`"),
        ("s001;scale;1;", "adjustments.csv:3: there is no reason"),
    ):
        file.write_text(f"student;exercise;points;why\ns003;scale;-1;kind\n{line}\n")
        said = ask(cli, place, pair, "adjust", "--file", file)
        assert (said.code, problem in said.err) == (2, True), said.err
    assert marks(place / "out")["s003"] == "12"


def test_a_report_shows_the_sum_of_its_mark(
    cli: Cli, instant: Instant, place: Path, pair: Path
) -> None:
    more = 'extra_credit = ["shift"]\n[weights]\nscale = 0.5\n'
    (pair / "reference" / "course.toml").write_text(f'title = "A pair"\npoints = 10\n{more}')
    run(cli, place, pair)
    mark: dict[str, Any] = report_of(place / "out", "s001")["mark"]
    assert [(step["says"], step["adds"], step["total"]) for step in mark["steps"]] == [
        ("Scale: 4 of 8, × 0.5", 2, 2),
        ("Shift: 4 of 2, extra credit", 4, 6),
    ]
    for end in (".html", ".md"):
        page = (place / "out" / "reports" / f"s001{end}").read_text().replace("\\", "")
        assert "Shift: 4 of 2, extra credit" in page
        assert "+4" in page
