"""Time that a student has beyond the due date: extra time, extensions, free late days."""

from __future__ import annotations

from pathlib import Path

import pytest
from class_lists import batch
from classroom import Instant, hand_in, marks, report_of
from commandline import Cli, Said

HEAD = 'title = "A tiny course"\npoints = 8\nzone = "Europe/Berlin"\n'
DUE = "start = 2026-11-02T12:00:00\ndue = 2026-11-12T12:00:00\n"  # a span of ten days
QUARTER = "[late]\nper_day = 25\n"


def settings(course: Path, due: str = DUE, late: str = QUARTER) -> None:
    (course / "reference" / "course.toml").write_text(f"{HEAD}{due}{late}")


def points(late_days: int) -> str:
    """8 points, of which each late day takes a quarter."""
    return f"{8 * (100 - 25 * late_days) / 100:g}"


# --- extra time -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "submitted", "late_days"),
    [
        ("", "2026-11-13 11:00", 1),
        ("24 hours", "2026-11-13 11:00", 0),
        ("24h", "2026-11-13 12:30", 1),
        ("2 days", "2026-11-14 12:00", 0),
        ("25 %", "2026-11-14 23:59", 0),  # of ten days: until 15 November, midnight
        ("25%", "2026-11-15 01:00", 1),
        ("12,5 %", "2026-11-13 18:00", 0),
        ("12,5 %", "2026-11-13 18:01", 1),
    ],
)
def test_extra_time_counts_from_the_due_date_of_the_course(
    extra: str,
    submitted: str,
    late_days: int,
    cli: Cli,
    instant: Instant,
    tmp_path: Path,
    tiny_copy: Path,
) -> None:
    settings(tiny_copy)
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    batch(cli, tmp_path, tiny_copy, roster=f"id;extra time;submitted\ns001;{extra};{submitted}\n")
    assert marks(tmp_path / "out") == {"s001": points(late_days)}


def test_extra_time_follows_the_due_date_and_is_explained(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy)
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 8 points" for n in (1, 2)})
    roster = "id,extra time,due,submitted\n"
    roster += "s001,24 hours,,2026-11-14 11:00\ns002,24 hours,2026-11-20 12:00,2026-11-19 12:00\n"
    batch(cli, tmp_path, tiny_copy, roster=roster)
    # 23 hours late with the extra time; the later of extra time and extension counts.
    assert marks(tmp_path / "out") == {"s001": points(1), "s002": points(0)}
    place = ("--in", tmp_path / "out", "--course", tiny_copy)
    said = cli("explain", "s001", *place).out
    assert "13 Nov 2026, 12:00 (the course's with 24 hours of extra time); 23 hours late" in said
    settings(tiny_copy, DUE.replace("due = 2026-11-12", "due = 2026-11-13"))
    assert cli("regrade", *place, "--publish").code == 0
    assert marks(tmp_path / "out") == {"s001": points(0), "s002": points(0)}


@pytest.mark.parametrize(
    ("extra", "due", "why"),
    [
        ("24", DUE, "roster.csv:2: extra time is `24`"),
        ("25 %", DUE.partition("\n")[2], "line 2 of the roster gives 25 % of extra time, and"),
        ("24 hours", "", "course.toml has no `due` to count from"),
    ],
)
def test_extra_time_that_cannot_be_counted_is_refused(
    extra: str, due: str, why: str, cli: Cli, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, due, "")
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, tiny_copy, roster=f"id,extra time\ns001,{extra}\n")
    assert (said.code, why in " ".join(said.err.split())) == (2, True)


# --- a later extension ----------------------------------------------------------------------------


def test_a_later_extension_needs_no_word(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy)
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 8 points" for n in (1, 2)})
    roster = "id,due,submitted\ns001,{},2026-11-14 10:00\ns002,,2026-11-14 10:00\n"
    batch(cli, tmp_path, tiny_copy, roster=roster.format(""))
    assert marks(tmp_path / "out") == {"s001": points(2), "s002": points(2)}
    said = batch(cli, tmp_path, tiny_copy, roster=roster.format("2026-11-13 12:00"))
    assert (said.code, marks(tmp_path / "out")) == (0, {"s001": points(1), "s002": points(2)})
    past = cli("history", "s001", "--in", tmp_path / "out", "--course", tiny_copy).out
    assert "4 → 6 of 8: the roster roster.csv: 2 students, 1 with a due date of their own" in past
    # Time that is taken away still needs one.
    said = batch(cli, tmp_path, tiny_copy, roster=roster.format(""))
    assert (said.code, "s001: 6 → 4 of 8 points" in said.err) == (2, True)
    assert marks(tmp_path / "out")["s001"] == points(1)


# --- free late days -------------------------------------------------------------------------------

BUDGET = f"{QUARTER}budget = 3\n"
FIRST = "id,email,submitted\ns001,s001@school.example,{}\ns002,s002@school.example,{}\n"


def homework(cli: Cli, place: Path, course: Path, roster: str, *earlier: Path) -> Said:
    """Grade one assignment of a term."""
    (place / "class.csv").parent.mkdir(parents=True, exist_ok=True)
    (place / "class.csv").write_text(roster)
    options = [option for folder in earlier for option in ("--earlier", folder)]
    out = ("--out", place / "out", "--course", course, "--roster", place / "class.csv")
    return cli("batch", place / "class", *out, *options)


def test_free_late_days_are_counted_over_results_folders(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, late=BUDGET)
    for number in (1, 2, 3):
        names = ("s001", "s002") if number < 3 else ("other-1", "other-2")
        texts = {f"{name}/scale.py": "# 8 points" for name in names}
        hand_in(tmp_path / str(number) / "class", texts)
    first, second, third = (tmp_path / str(number) for number in (1, 2, 3))
    # 1 day and 10 hours are two days begun; both are free.
    roster = FIRST.format("2026-11-13 22:00", "2026-11-12 11:00")
    homework(cli, first, tiny_copy, roster)
    assert marks(first / "out") == {"s001": points(0), "s002": points(0)}
    mark = report_of(first / "out", "s001")["mark"]
    assert (mark["late_days"], mark["free_days"]) == (2, 2)
    free = "1 day and 10 hours late, 2 days of them free: 100 % of them count"
    assert free in mark["says"]
    # Two more days: the third free day, and one that costs a quarter.
    roster = FIRST.format("2026-11-13 22:00", "2026-11-13 22:00")
    homework(cli, second, tiny_copy, roster, first / "out")
    assert marks(second / "out") == {"s001": points(2 + 2 - 3), "s002": points(0)}
    step = report_of(second / "out", "s001")["mark"]["steps"][-1]["says"]
    assert step == "1 day and 10 hours late (as 2 days), 1 day of them free: 75 % count"
    said = cli("explain", "s001", "--in", second / "out", "--course", tiny_copy).out
    assert "1 day and 10 hours late (as 2 days), 1 day of them free" in said
    # Both folders count, and students are found by their addresses.
    roster = FIRST.format("2026-11-13 11:00", "2026-11-14 11:00").replace("s001,", "other-1,", 1)
    roster = roster.replace("s002,", "other-2,", 1)
    homework(cli, third, tiny_copy, roster, first / "out", second / "out")
    assert marks(third / "out") == {"other-1": points(1), "other-2": points(2 + 2 - 3)}
    assert report_of(third / "out", "other-2")["mark"]["free_days"] == 3 - 2


def test_earlier_folders_are_remembered_and_read_again(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, late=BUDGET)
    first, second = tmp_path / "1", tmp_path / "2"
    for place in (first, second):
        hand_in(place / "class", {f"s00{n}/scale.py": "# 8 points" for n in (1, 2)})
    late = FIRST.format("2026-11-14 22:00", "2026-11-12 11:00")  # three days begun
    homework(cli, first, tiny_copy, late)
    homework(cli, second, tiny_copy, late, first / "out")
    assert marks(second / "out") == {"s001": points(3), "s002": points(0)}
    # An extension of the first homework gives a day back, which regrade shows before it counts.
    extended = late.replace("submitted", "submitted,due").replace("22:00", "22:00,2026-11-13 12:00")
    homework(cli, first, tiny_copy, extended)
    assert report_of(first / "out", "s001")["mark"]["free_days"] == 2
    place = ("--in", second / "out", "--course", tiny_copy)
    assert "s001       2 → 4      of 8" in cli("regrade", *place).out
    resume = ("batch", "--resume", "--out", second / "out", "--course", tiny_copy)
    assert cli(*resume).code == 0
    assert marks(second / "out")["s001"] == points(3)
    said = cli(*resume, "--earlier", first / "out")
    assert (said.code, "takes no other submissions" in said.err) == (2, True)
    said = homework(cli, second, tiny_copy, late)
    assert (said.code, "s001: 2 → 4 of 8 points" in said.err) == (2, True)
    assert cli("regrade", *place, "--publish").code == 0
    assert marks(second / "out")["s001"] == points(2)


@pytest.mark.parametrize("folder", ["nowhere", "out"])
def test_a_folder_that_is_no_earlier_assignment_is_refused(
    folder: str, cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, late=BUDGET)
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    roster = "id\ns001\n"
    said = homework(cli, tmp_path, tiny_copy, roster, tmp_path / folder)
    why = {"nowhere": "does not say who used late days", "out": "is no earlier assignment"}
    assert (said.code, why[folder] in said.err) == (2, True)


def test_an_erased_student_has_no_free_days_either(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, late=BUDGET)
    first, second = tmp_path / "1", tmp_path / "2"
    for place in (first, second):
        hand_in(place / "class", {f"s00{n}/scale.py": "# 8 points" for n in (1, 2)})
    late = FIRST.format("2026-11-14 22:00", "2026-11-14 22:00")
    homework(cli, first, tiny_copy, late)
    homework(cli, second, tiny_copy, late, first / "out")
    assert b"s001" in (second / "out" / "ledger.sqlite").read_bytes()
    said = cli("erase", "s001", "--in", second / "out", "--course", tiny_copy, "--yes")
    assert said.code == 0
    assert b"s001" not in (second / "out" / "ledger.sqlite").read_bytes()
    assert marks(second / "out") == {"s002": points(3)}


@pytest.mark.parametrize(
    ("late", "due", "says"),
    [
        ("[late]\nbudget = 5\n", DUE, "late.budget has no effect without `per_day` or `steps`"),
        (QUARTER, "start = 2026-11-02T12:00:00\n", "late has no effect without a due date"),
        ("", DUE.replace("11-02", "11-22"), "start is when work begins, before `due`"),
    ],
)
def test_rules_that_count_nothing_are_refused(
    late: str, due: str, says: str, cli: Cli, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, due, late)
    said = cli("batch", tmp_path, "--out", tmp_path / "out", "--course", tiny_copy)
    assert (said.code, says in said.err) == (2, True)
