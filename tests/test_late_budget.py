"""Late days that cost nothing, over the assignments of a term: whose they are, and what is left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from classroom import Instant, hand_in, marks, report_of
from commandline import Cli, Said
from downloads import DUE, EXTENDED, FIRST, LATE, LAYOUTS, PROMPT, Layout, packed
from handed_in import zipped
from test_accommodations import QUARTER, points, settings

BUDGET = f"{QUARTER}budget = 3\n"
ROSTER = "id,email,submitted\ns001,s001@school.example,{}\ns002,s002@school.example,{}\n"


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
    roster = ROSTER.format("2026-11-13 22:00", "2026-11-12 11:00")
    homework(cli, first, tiny_copy, roster)
    assert marks(first / "out") == {"s001": points(0), "s002": points(0)}
    mark = report_of(first / "out", "s001")["mark"]
    assert (mark["late_days"], mark["free_days"]) == (2, 2)
    free = "1 day and 10 hours late, 2 days of them free: 100 % of them count"
    assert free in mark["says"]
    # Two more days: the third free day, and one that costs a quarter.
    roster = ROSTER.format("2026-11-13 22:00", "2026-11-13 22:00")
    homework(cli, second, tiny_copy, roster, first / "out")
    assert marks(second / "out") == {"s001": points(2 + 2 - 3), "s002": points(0)}
    step = report_of(second / "out", "s001")["mark"]["steps"][-1]["says"]
    assert step == "1 day and 10 hours late (as 2 days), 1 day of them free: 75 % count"
    said = cli("explain", "s001", "--in", second / "out", "--course", tiny_copy).out
    assert "1 day and 10 hours late (as 2 days), 1 day of them free" in said
    # Both folders count, and students are found by their addresses.
    roster = ROSTER.format("2026-11-13 11:00", "2026-11-14 11:00").replace("s001,", "other-1,", 1)
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
    late = ROSTER.format("2026-11-14 22:00", "2026-11-12 11:00")  # three days begun
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
    late = ROSTER.format("2026-11-14 22:00", "2026-11-14 22:00")
    homework(cli, first, tiny_copy, late)
    homework(cli, second, tiny_copy, late, first / "out")
    assert b"s001" in (second / "out" / "ledger.sqlite").read_bytes()
    said = cli("erase", "s001", "--in", second / "out", "--course", tiny_copy, "--yes")
    assert said.code == 0
    assert b"s001" not in (second / "out" / "ledger.sqlite").read_bytes()
    assert marks(second / "out") == {"s002": points(3)}


# --- the platforms --------------------------------------------------------------------------------

COURSE = f'title = "A pair"\npoints = 10\ndue = {DUE.isoformat()}\n{BUDGET}'
RENUMBERED = replace(  # Moodle gives everybody another number in each assignment
    LAYOUTS["moodle"],
    write=packed("Student {name}_17{n}_assignsubmission_file/{file}.py", zipped),
    ids="17{}",
    listed="Participant 17{}",
)


@pytest.mark.parametrize(
    ("name", "days"),
    # `LATE` is a day and twelve hours late, which is two days begun; Canvas says no more than that.
    [("canvas", 1), ("moodle", 2), ("gradescope", 2), ("clones", 2)],
)
def test_days_count_where_the_platforms_files_have_the_times(
    name: str, days: int, cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    (pair / "reference/course.toml").write_text(COURSE)
    layouts = [LAYOUTS[name], RENUMBERED if name == "moodle" else LAYOUTS[name]]
    outs = [tmp_path / "hw1", tmp_path / "hw2"]
    for layout, out, earlier in zip(layouts, outs, ([], ["--earlier", outs[0]])):
        place = tmp_path / f"of {out.name}"
        place.mkdir()
        layout.write(place / layout.download, FIRST)
        (place / "class.csv").write_text(layout.roster(FIRST))
        handed = (place / layout.download, "--roster", place / "class.csv")
        assert cli("batch", *handed, "--out", out, "--course", pair, *earlier).code == 1
    used = [min(3, days), min(3 - days, days)]
    keeps = 100 - 25 * (days - used[1])
    assert marks_of(LATE, layouts, outs) == ["6", f"{(4 + 2) * keeps / 100:g}"]
    assert free_days_of(LATE, layouts, outs) == [(used[0], 3 - days), (used[1], 3 - sum(used))]
    # A day after the due date is in time with an extension of two days, and costs no free day.
    assert marks_of(EXTENDED, layouts, outs) == ["8", "8"]
    assert free_days_of(EXTENDED, layouts, outs) == [(0, 3)] * 2
    assert free_days_of(PROMPT, layouts, outs) == [(0, 3)] * 2
    said = cli("explain", layouts[1].id(LATE), "--in", outs[1], "--course", pair).out
    spent = f"{used[0]} used in earlier assignments, {used[1]} here"
    assert f"  free days   3: {spent}, {3 - sum(used)} left\n" in said
    said = cli("explain", layouts[1].id(PROMPT), "--in", outs[1], "--course", pair).out
    assert "  free days   3: 0 used in earlier assignments, 0 here, 3 left\n" in said
    page = (outs[1] / f"reports/{layouts[1].id(LATE)}.html").read_text()
    left = f"Free late days that are left: {3 - sum(used)}; this submission has used {used[1]}."
    assert left in page


def marks_of(student: int, layouts: list[Layout], outs: list[Path]) -> list[str]:
    return [marks(out)[layout.id(student)] for layout, out in zip(layouts, outs)]


def free_days_of(student: int, layouts: list[Layout], outs: list[Path]) -> list[tuple[int, int]]:
    """Return the free days that a student has used in each assignment, and has left then."""
    found = [report_of(out, layout.id(student))["mark"] for layout, out in zip(layouts, outs)]
    return [(mark["free_days"], mark["free_left"]) for mark in found]


def test_what_is_later_than_an_extension_uses_free_days_from_there(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, late=BUDGET)
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 8 points" for n in (1, 2)})
    # Both hand in 3 days and an hour after the due date; an extension of two days covers two.
    roster = "id,submitted,due\ns001,2026-11-15 13:00,2026-11-14 12:00\n"
    homework(cli, tmp_path, tiny_copy, f"{roster}s002,2026-11-15 13:00,\n")
    assert marks(tmp_path / "out") == {"s001": points(2 - 2), "s002": points(4 - 3)}
    found = [report_of(tmp_path / "out", student)["mark"] for student in ("s001", "s002")]
    assert [(mark["free_days"], mark["free_left"]) for mark in found] == [(2, 3 - 2), (3, 3 - 3)]


def test_the_folders_before_an_earlier_one_count_without_being_named(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, late=BUDGET)
    places = [tmp_path / number for number in "123"]
    late = ROSTER.format("2026-11-13 13:00", "2026-11-12 11:00")  # two days begun
    for place, earlier in zip(places, ([], places[:1], places[1:2])):
        hand_in(place / "class", {f"s00{n}/scale.py": "# 8 points" for n in (1, 2)})
        homework(cli, place, tiny_copy, late, *(each / "out" for each in earlier))
    taken = [2 - 2, 2 - 1, 2 - 0]  # the budget of three days pays for two, one and none
    assert [marks(place / "out")["s001"] for place in places] == [points(days) for days in taken]
    said = homework(cli, places[0], tiny_copy, late, places[2] / "out")  # which comes after it
    assert (said.code, f"is an earlier assignment of {places[1] / 'out'}" in said.err) == (2, True)
    assert marks(places[0] / "out")["s001"] == points(2 - 2)


def test_whoever_may_have_used_days_but_not_for_certain_needs_review(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings(tiny_copy, late=BUDGET)
    names = "id,name,submitted\n{0}1,Student One,2026-11-13 22:00\n{0}2,Student One,{1}\n"
    for place, prefix, time in (("1", "a", "2026-11-12 11:00"), ("2", "b", "2026-11-13 11:00")):
        hand_in(tmp_path / place / "class", {f"{prefix}{n}/scale.py": "# 8 points" for n in "12"})
        earlier = [tmp_path / "1" / "out"] if place == "2" else []
        said = homework(cli, tmp_path / place, tiny_copy, names.format(prefix, time), *earlier)
    # One of two namesakes has used two days, and nothing says which one of them.
    assert marks(tmp_path / "2" / "out") == {"b1": points(2 - 2), "b2": points(1 - 1)}
    doubt = "may be a student of out who used free late days there, which were not counted"
    assert said.code == 1
    for student in ("b1", "b2"):
        assert f"  ! {student} (Student One): {doubt}; needs review\n" in said.err
