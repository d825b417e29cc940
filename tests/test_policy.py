"""What a course makes of points: weights, extra credit, lateness, and wrong settings."""

from __future__ import annotations

import random
import tomllib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from commandline import Cli

from grader.course.policy import CourseSettings, Policy, Step, make_policy
from grader.course.settings import convert
from grader.errors import CourseError
from grader.report import Adjustment, ExerciseResult, Mark, MarkStep

DUE = datetime(2026, 10, 30, 12, tzinfo=UTC)
NAMES = ("scale", "shift")


def result(name: str, points: int, most: int, adjusted: float | None = None) -> ExerciseResult:
    adjustment = None if adjusted is None else Adjustment(adjusted, "because")
    return ExerciseResult(name, name.title(), points, most, "", (), adjustment=adjustment)


def read(text: str) -> Policy:
    data = {"title": "A course", "points": 10, **tomllib.loads(text)}
    return make_policy(convert(data, CourseSettings, "course.toml"), NAMES, "course.toml")


def test_a_course_that_says_nothing_counts_points_as_they_are() -> None:
    mark = read("").mark([result("scale", 5, 8), result("shift", 2, 2)], 0)
    assert mark == Mark(points=7, max_points=10, earned=7, late_days=0, says="")


@pytest.mark.parametrize(
    ("weights", "extra", "points", "most"),
    [
        ({"scale": 2.0}, (), 12, 18),
        ({"scale": 0.5, "shift": 3.0}, (), 8.5, 10),
        ({"scale": 0.0}, (), 2, 2),
        ({}, ("shift",), 7, 8),
        ({"shift": 4.0}, ("shift",), 13, 8),
        ({"scale": 1 / 3}, (), 3.67, 4.67),
    ],
)
def test_weights_and_extra_credit(
    weights: dict[str, float], extra: tuple[str, ...], points: float, most: float
) -> None:
    policy = Policy(weights=weights, extra_credit=extra)
    mark = policy.mark([result("scale", 5, 8), result("shift", 2, 2)], 0)
    assert (mark.points, mark.earned, mark.max_points) == (points, points, most)
    assert mark.says
    assert mark.steps[-1].total == points


@pytest.mark.parametrize(
    ("adjusted", "weight", "points"),
    [(2, 1.0, 7), (-1.5, 1.0, 3.5), (2, 0.5, 3.5), (-40, 1.0, 0), (6, 1.0, 11)],
)
def test_an_adjustment_is_weighted_and_never_takes_more_than_there_is(
    adjusted: float, weight: float, points: float
) -> None:
    mark = Policy(weights={"scale": weight}).mark([result("scale", 5, 8, adjusted)], 0)
    how = "adjusted" if weight == 1 else "adjusted, weighted"
    assert (mark.points, mark.says) == (points, f"{points:g} points, {how}.")


@pytest.mark.parametrize(
    ("days", "keeps"),
    [(0, 100), (0.001, 90), (1, 90), (1.001, 80), (2, 80), (6.5, 30), (7, 30), (99, 30)],
)
def test_each_day_begun_takes_its_part_down_to_the_floor(days: float, keeps: float) -> None:
    assert Policy(due=DUE, per_day=10, floor=30).keeps(days) == keeps


def test_without_a_floor_nothing_may_be_left_but_never_less() -> None:
    assert [Policy(per_day=40).keeps(days) for days in (1, 2, 3, 300)] == [60, 20, 0, 0]


@pytest.mark.parametrize(
    ("days", "keeps"),
    [(0, 100), (0.01, 90), (1, 90), (1.01, 75), (3, 75), (3.01, 10), (99, 10)],
)
def test_the_first_step_that_is_long_enough_counts(days: float, keeps: float) -> None:
    policy = read(
        "due = 2026-10-30T12:00:00Z\n[late]\nfloor = 10\n"
        "steps = [{days = 3, keeps = 75}, {days = 1, keeps = 90}]"
    )
    assert policy.steps == (Step(1, 90), Step(3, 75))
    assert policy.keeps(days) == keeps


def test_no_step_keeps_less_than_the_floor() -> None:
    assert Policy(steps=(Step(2, 5),), floor=20).keeps(1) == 20


@pytest.mark.parametrize(
    ("minutes", "days"),
    [(-60, 0), (0, 0), (1, 0), (15, 0), (16, 16 / 1440), (1440, 1), (1441, 1441 / 1440)],
)
def test_the_grace_is_not_counted_unless_it_is_exceeded(minutes: int, days: float) -> None:
    policy = Policy(due=DUE, grace=timedelta(minutes=15))
    assert policy.days_late(DUE + timedelta(minutes=minutes)) == pytest.approx(days)


def test_lateness_is_counted_from_ones_own_due_date_in_any_zone() -> None:
    policy = Policy(due=DUE)
    elsewhere = timezone(timedelta(hours=-8))
    handed_in = datetime(2026, 11, 1, 4, tzinfo=elsewhere)  # 12 o'clock UTC
    assert policy.days_late(handed_in) == 2
    assert policy.days_late(handed_in, DUE + timedelta(days=1)) == 1
    assert policy.days_late(handed_in, DUE + timedelta(days=2)) == 0
    assert policy.days_late(handed_in, DUE - timedelta(days=1)) == 3
    assert policy.days_late(None) == 0
    assert Policy().days_late(handed_in) == 0


def test_a_late_mark_says_how_it_came_about() -> None:
    policy = Policy(due=DUE, per_day=25, weights={"scale": 2.0})
    mark = policy.mark([result("scale", 5, 8, adjusted=1)], 1.25)
    assert (mark.points, mark.max_points, mark.earned, mark.late_days) == (6, 16, 12, 2)
    late = "handed in 1 day and 6 hours late: 50 % of them count, 6 points."
    assert mark.says == f"12 points, adjusted, weighted, {late}"
    assert mark.steps == (
        MarkStep("Scale: 5 of 8, adjusted by +1, × 2", 12, 12),
        MarkStep("1 day and 6 hours late (as 2 days): 50 % count", -6, 6),
    )
    just = policy.mark([result("scale", 5, 8)], 0.01)
    assert "handed in 14 minutes late: 75 % of them count, 7.5 points" in just.says


def test_each_line_of_a_sum_adds_up_to_the_next() -> None:
    draw = random.Random(1)
    for _ in range(300):
        weights = {name: draw.choice([1.0, 0.5, 1 / 3, 0.07]) for name in NAMES}
        late = draw.choice([0.0, 0.3, 1.25])
        policy = Policy(due=DUE, per_day=7, weights=weights, extra_credit=("shift",))
        exercises = [result(name, draw.randint(0, 9), 9, draw.choice([-12.5, 1])) for name in NAMES]
        mark = policy.mark(exercises, late, Adjustment(draw.choice([-30.0, 0.33]), "kind"))
        totals = [0.0, *(step.total for step in mark.steps)]
        for before, step in zip(totals, mark.steps):
            assert round(before + step.adds, 2) == step.total
        assert totals[-1] == mark.points >= 0


def test_the_mark_itself_is_adjusted_after_lateness() -> None:
    policy = Policy(due=DUE, per_day=50)
    mark = policy.mark([result("scale", 8, 8)], 0.5, Adjustment(2, "ill"))
    assert (mark.points, mark.earned) == (6, 8)
    assert mark.steps[-1] == MarkStep("adjusted: ill", 2, 6)
    assert mark.says.endswith("4 points. The mark was adjusted by +2.")


def test_what_a_course_says_is_read() -> None:
    policy = read(
        'due = 2026-10-30T13:00:00+01:00\nextra_credit = ["shift"]\n'
        "[late]\ngrace_minutes = 15\nper_day = 10\nfloor = 50\n"
        '[weights]\nscale = 2\n[show]\ntests = "after_due"\n'
    )
    assert policy == Policy(
        due=DUE,
        zone=timezone(timedelta(hours=1)),
        grace=timedelta(minutes=15),
        per_day=10,
        floor=50,
        weights={"scale": 2},
        extra_credit=("shift",),
        show={"tests": "after_due"},
    )


LATE = "due = 2026-10-30T12:00:00Z\n[late]\n"
ZONED = "due: expected a date and time"
MINUTES = "late.grace_minutes: expected a number <= 525600"
WHEN = "show.tests: expected one of always, after_due, never"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "due = 2026-10-30T12:00:00",
            'due: in which time zone? Add such as zone = "',
        ),
        ('zone = "Europe/Berlin "', "zone: `Europe/Berlin ` is no time zone; such as"),
        ('zone = "../passwd"', "zone: `../passwd` is no time zone; such as"),
        (
            'zone = "Europe/Berlin"\ndue = 2026-10-27T12:00:00+02:00',
            "due has the offset +02:00, but Europe/Berlin has +01:00 then; leave it out",
        ),
        ("due = 2026-10-30", f"{ZONED}, got `date`"),
        ('due = "tomorrow"', f"{ZONED}, got text"),
        ('due = "2026-10-30T12:00:00Z"', f"{ZONED}, got text"),
        ("late = 5", "late: expected a table, got a whole number"),
        ("[late]\nper_day = 10", "late has no effect without a due date; add `due`"),
        (LATE + "per_week = 10", "late: unknown key `per_week`; did you mean `per_day`?"),
        (
            LATE + "x = 10",
            "late: unknown key `x`; the keys are grace_minutes, per_day, steps, floor",
        ),
        (LATE + "per_day = 101", "late.per_day: expected a number <= 100"),
        (LATE + "per_day = -1", "late.per_day: expected a number >= 0"),
        (LATE + "per_day = nan", "late.per_day: expected a number >= 0"),
        (LATE + f"per_day = 1{'0' * 400}", "late.per_day: Number out of range"),
        (LATE + 'per_day = "10 %"', "late.per_day: expected a number, got text"),
        (LATE + "floor = true", "late.floor: expected a number, got"),
        (LATE + "grace_minutes = inf", MINUTES),
        (LATE + "grace_minutes = 1e300", MINUTES),
        (LATE + "per_day = 5\nsteps = []", "late has both `per_day` and `steps`; keep one of them"),
        (LATE + "steps = 5", "late.steps: expected a list, got a whole number"),
        (LATE + "steps = [5]", "late.steps[0]: expected a table, got a whole number"),
        (LATE + "steps = [{days = 1}]", "late.steps[0]: missing key `keeps`"),
        (
            LATE + "steps = [{days = 1, keep = 5}]",
            "late.steps[0]: unknown key `keep`; did you mean `keeps`?",
        ),
        (
            LATE + "steps = [{days = 1, keeps = 120}]",
            "late.steps[0].keeps: expected a number <= 100",
        ),
        (
            LATE + "steps = [{days = 1, keeps = 20}, {days = -1, keeps = 50}]",
            "late.steps[1].days: expected a number >= 0",
        ),
        (
            LATE + "steps = [{days = inf, keeps = 5}]",
            "late.steps[0].days: expected a number <= 1e+308",
        ),
        ("weights = 5", "weights: expected a table, got a whole number"),
        ("[weights]\nscael = 2", "weights: there is no exercise `scael`; did you mean `scale`?"),
        ("[weights]\nscale = -2", "weights.scale: expected a number >= 0"),
        ("[weights]\nscale = inf", "weights.scale: expected a number <= 1e+308"),
        ('[weights]\nscale = 1\nshift = "2"', "weights.shift: expected a number, got text"),
        (
            'extra_credit = ["scael"]',
            "extra_credit: there is no exercise `scael`; did you mean `scale`?",
        ),
        ('extra_credit = "scale"', "extra_credit: expected a list, got text"),
        ("extra_credit = 5", "extra_credit: expected a list, got a whole number"),
        ('extra_credit = ["scale", 5]', "extra_credit[1]: expected text, got a whole number"),
        ('[show]\ntests = "later"', WHEN),
        ("[show]\ntests = true", "show.tests: expected text, got"),
        ("[show]\ntests = []", "show.tests: expected text, got a list"),
        ('[show]\nidee = "never"', "show: unknown key `idee`; did you mean `idea`?"),
        ('titel = "A course"', "unknown key `titel`; did you mean `title`?"),
        ("points = 9.5", "points: expected a whole number, got a number"),
        ("title = 5", "title: expected text, got a whole number"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(text: str, said: str) -> None:
    with pytest.raises(CourseError) as caught:
        read(text)
    assert caught.value.message.startswith(f"course.toml: {said}")


def test_a_wrong_setting_is_said_before_anything_is_graded(cli: Cli, tiny_copy: Path) -> None:
    path = tiny_copy / "reference" / "course.toml"
    path.write_text(f'{path.read_text()}\nextra_credit = ["scael"]\n')
    said = cli("batch", tiny_copy, "--out", tiny_copy / "out", "--course", tiny_copy)
    assert said.code == 2
    assert f"{path}: extra_credit: there is no exercise `scael`" in said.err
