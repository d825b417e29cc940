"""A time counts by the clock of its own day, in the zone of the course."""

from __future__ import annotations

from pathlib import Path

import pytest
from class_lists import batch, flags
from classroom import TINY, Instant, hand_in, marks, report_of
from commandline import Cli

from grader.classroom.stored import history as stored_history

HEAD = 'title = "A tiny course"\npoints = 8\n'
LATE = "[late]\nper_day = 10\n"
ROSTER = "id,due,submitted\ns001,2026-10-27 23:59,2026-10-27 23:30\ns002,,2026-10-21 10:00\n"


def settings(course: Path, *lines: str, late: str = LATE) -> None:
    text = HEAD + "".join(f"{line}\n" for line in lines) + late
    (course / "reference" / "course.toml").write_text(text)


def test_an_extension_beyond_a_change_of_the_clock_is_in_local_time(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, 'zone = "Europe/Berlin"', "due = 2026-10-20T23:59:00")
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 8 points" for n in (1, 2)})
    batch(cli, tmp_path, tiny_copy, roster=ROSTER)
    # One is in time; the other is 10 hours late, which is one day begun.
    assert marks(tmp_path / "out") == {"s001": "8", "s002": f"{8 * 0.9:g}"}
    assert flags(tmp_path, "s001") == []
    said = cli("explain", "s001", "--in", tmp_path / "out", "--course", tiny_copy).out
    assert "handed in   27 Oct 2026, 23:30\n" in said
    assert "27 Oct 2026, 23:59 (an extension); in time" in said
    said = cli("explain", "s002", "--in", tmp_path / "out", "--course", tiny_copy).out
    assert "20 Oct 2026, 23:59 (the course's); 10 hours and 1 minute late" in said


def test_a_time_with_its_own_offset_is_told_in_the_hour_of_its_day(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, 'zone = "Europe/Berlin"', "due = 2026-10-20T23:59:00")
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    roster = "id,due,submitted\ns001,2026-10-27T22:59Z,2026-10-27T22:30Z\n"
    batch(cli, tmp_path, tiny_copy, roster=roster)
    said = cli("explain", "s001", "--in", tmp_path / "out", "--course", tiny_copy).out
    assert "handed in   27 Oct 2026, 23:30\n" in said
    assert "27 Oct 2026, 23:59 (an extension); in time" in said


def test_the_history_tells_the_hour_of_its_day(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(tiny_copy, 'zone = "Europe/Berlin"', "due = 2026-10-20T23:59:00")
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    monkeypatch.setattr(stored_history, "now", lambda: "2026-10-27T22:30:00.000+00:00")
    batch(cli, tmp_path, tiny_copy)
    said = cli("history", "s001", "--in", tmp_path / "out", "--course", tiny_copy).out
    assert "27 Oct 2026, 23:30  s001  new → 8 of 8" in said


def test_a_fixed_offset_beyond_a_change_of_the_clock_is_said(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, "due = 2026-10-20T23:59:00+02:00")
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 8 points" for n in (1, 2)})
    said = batch(cli, tmp_path, tiny_copy, roster=ROSTER)
    why = (
        "a time in the roster was read with the offset +02:00 of `due`, but clocks change before "
        'it; in course.toml, write such as zone = "Europe/Berlin"'
    )
    assert f"s001: {why}\n" in said.err
    found = [report_of(tmp_path / "out", student)["flags"] for student in ("s001", "s002")]
    assert found == [[why], []]


@pytest.mark.parametrize(
    ("due", "says"),
    [
        ("2026-10-20T23:59:00+02:00", "+02:00, but clocks change by 2026-10-25, as in Europe/"),
        ("2026-10-20T23:59:00-07:00", "-07:00, but clocks change by 2026-11-01, as in America/"),
        ("2026-11-12T12:00:00+01:00", ""),
        ("2026-10-20T23:59:00+05:30", ""),
        ('2026-10-20T23:59:00\nzone = "Europe/Berlin"', ""),
    ],
)
def test_validate_says_that_the_clocks_change_soon_after_the_due_date(
    due: str, says: str, cli: Cli, tiny_copy: Path
) -> None:
    settings(tiny_copy, f"due = {due}", late="")
    said = cli("validate", "--course", tiny_copy)
    assert ("has the fixed offset" in said.out) == bool(says)
    assert says in said.out


def test_a_course_with_a_zone_that_nobody_trusts_is_read_while_confined(
    cli: Cli, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, 'zone = "Europe/Berlin"', "due = 2026-10-20T23:59:00")
    hand_in(tmp_path, {"s001/scale.py": (TINY / "reference/scale/solution.py").read_text()})
    assert cli("check", tmp_path / "s001", "--course", tiny_copy).code == 0


@pytest.mark.parametrize(
    ("due", "submitted", "late_days"),
    [
        # From one evening to the next, this day has 25 hours.
        ("2026-10-24T20:00:00", "2026-10-25 20:00", 1),
        ("2026-10-24T20:00:00", "2026-10-25 20:01", 2),
        # This one has 23 hours.
        ("2027-03-27T20:00:00", "2027-03-28 20:00", 1),
        ("2027-03-27T20:00:00", "2027-03-28 20:01", 2),
        # The clocks show half past two twice; the second time is an hour later.
        ("2026-10-25T02:30:00+02:00", "2026-10-25T02:15:00+01:00", 1),
    ],
)
def test_a_late_day_ends_at_the_hour_of_the_due_date_whatever_the_clocks_do(
    due: str,
    submitted: str,
    late_days: int,
    cli: Cli,
    instant: Instant,
    tmp_path: Path,
    tiny_copy: Path,
) -> None:
    settings(tiny_copy, 'zone = "Europe/Berlin"', f"due = {due}")
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    batch(cli, tmp_path, tiny_copy, roster=f"id,submitted\ns001,{submitted}\n")
    assert marks(tmp_path / "out") == {"s001": f"{8 * (100 - 10 * late_days) / 100:g}"}


def test_an_extension_of_days_ends_at_the_same_hour_after_a_change_of_the_clock(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, 'zone = "Europe/Berlin"', "due = 2026-10-20T18:00:00")
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 8 points" for n in (1, 2)})
    roster = "id,extra time,submitted\ns001,7 days,2026-10-27 18:00\ns002,7 days,2026-10-27 18:01\n"
    batch(cli, tmp_path, tiny_copy, roster=roster)
    assert marks(tmp_path / "out") == {"s001": "8", "s002": f"{8 * 0.9:g}"}
