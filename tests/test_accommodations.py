"""Time that a student has beyond the due date: extra time, extensions, free late days."""

from __future__ import annotations

from pathlib import Path

import pytest
from class_lists import batch
from classroom import Instant, hand_in, marks
from commandline import Cli

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


# --- rules ---------------------------------------------------------------------------------------


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
