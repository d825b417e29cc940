"""Grading again after a change: who changes and by how much is said before anybody is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from classroom import Instant, hand_in, marks, report_of, rows
from commandline import Cli
from regrading import add_rule, adjust, batch, out, pages, regrade, touch

from grader.course.course import load_course

STRICTER = (
    '    """One and one is two, and two and two is four."""\n'
    "    assert student.shift(1, 1) == 2\n    assert student.shift(2, 2) == 4\n"
)


# --- with slots that answer at once ---------------------------------------------------------------


@pytest.mark.slow
def test_only_the_exercise_that_changed_is_graded_again(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    found = rows(out(handed_in), "SELECT * FROM results")
    assert len(found) == 7
    instant.jobs.clear()
    touch(pair, "shift")
    said = regrade(cli, handed_in, pair)
    assert instant.graded == [(name, ("shift",)) for name in ("s001", "s002", "s003")]
    assert "0 change, 4 stay as they were" in said.out
    after = rows(out(handed_in), "SELECT * FROM results")
    assert set(found) < set(after)
    new = rows(out(handed_in), "SELECT DISTINCT exercise, run FROM results WHERE run > 1")
    assert (len(after), new) == (10, [("shift", 2)])
    # What was found is kept, also before it is published: nothing is graded a third time.
    regrade(cli, handed_in, pair)
    regrade(cli, handed_in, pair, "--publish")
    assert batch(cli, handed_in, pair).code == 1
    assert len(instant.jobs) == 3


def test_a_part_that_others_build_on_is_graded_with_them(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    settings = pair / "reference" / "shift" / "exercise.toml"
    settings.write_text(f'requires = ["scale"]\n{settings.read_text()}')
    batch(cli, handed_in, pair)
    instant.jobs.clear()
    solution = pair / "reference" / "scale" / "solution.py"
    solution.write_text(solution.read_text() + "\n# changed\n")
    regrade(cli, handed_in, pair)
    assert instant.graded[0] == ("s001", ("scale", "shift"))
    instant.jobs.clear()
    touch(pair, "scale")
    regrade(cli, handed_in, pair)
    assert {names for _, names in instant.graded} == {("scale",)}


def test_what_decides_nothing_grades_nothing_again(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    instant.jobs.clear()
    for file in ("statement.md", "test_public.py"):
        path = pair / "reference" / "scale" / file
        path.write_text(path.read_text() + "\n")
    assert batch(cli, handed_in, pair).code == 1
    assert "0 change, 4 stay" in regrade(cli, handed_in, pair).out
    assert instant.jobs == []


def test_after_a_change_batch_refuses_and_names_the_command(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    before = pages(handed_in)
    instant.jobs.clear()
    touch(pair, "shift")
    for resume in (False, True):
        said = (
            cli("batch", "--resume", "--out", out(handed_in), "--course", pair)
            if resume
            else batch(cli, handed_in, pair)
        )
        assert said.code == 2
        assert "under other rules; changed since: the grading of shift" in said.err
        assert "grader regrade   shows who changes and by how much" in said.err
    assert (instant.jobs, pages(handed_in)) == ([], before)


@pytest.mark.slow
def test_a_refusal_and_the_history_say_which_rules_changed(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    add_rule(pair, "weights = { scale = 2 }")
    touch(pair, "shift")
    changed = "the weights and the grading of shift"
    said = batch(cli, handed_in, pair)
    assert f"under other rules; changed since: {changed}" in said.err
    regrade = cli("regrade", "--publish", "--in", out(handed_in), "--course", pair)
    assert regrade.code == 0, regrade
    assert batch(cli, handed_in, pair).code == 1
    history = cli("history", "--in", out(handed_in), "--course", pair).out
    assert f"rules: regraded after a change of {changed}\n" in history


def test_a_change_before_anybody_was_told_needs_no_regrade(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    def stopping(job: Any) -> None:
        raise KeyboardInterrupt

    instant.before = stopping
    (handed_in / "s004" / "scale.py").write_text("# 4 points")
    assert batch(cli, handed_in, pair).code == 130
    instant.before = lambda job: None
    touch(pair, "shift")
    assert batch(cli, handed_in, pair).code == 1


@pytest.mark.slow
def test_who_left_before_the_change_does_not_stand_in_the_way(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    for file in ("scale.py", "shift.py"):
        (handed_in / "s002" / file).unlink()
    (handed_in / "s002").rmdir()
    batch(cli, handed_in, pair, "--replace")
    touch(pair, "shift")
    said = regrade(cli, handed_in, pair, "--publish")
    assert "0 change, 3 stay as they were" in said.out
    assert batch(cli, handed_in, pair).code == 1
    assert "s002" not in marks(out(handed_in))


@pytest.mark.slow
def test_regrading_many_who_do_not_change_runs_nothing(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    for number in range(200):
        hand_in(tmp_path / "class" / f"s{number:03}", {"scale.py": f"# {number % 9} points"})
    batch(cli, tmp_path / "class", pair)
    assert len(instant.jobs) == 9
    instant.before = lambda job: pytest.fail("graded again")
    before = pages(tmp_path / "class")
    said = regrade(cli, tmp_path / "class", pair, "--publish")
    assert (said.code, said.err) == (0, "")
    assert "0 change, 200 stay as they were" in said.out
    assert pages(tmp_path / "class") == before
    assert rows(tmp_path / "out", "SELECT count(*) FROM runs") == [(1,)]


def test_grading_a_student_again_grades_them_alone(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    instant.jobs.clear()
    said = regrade(cli, handed_in, pair, "--again", "s002", "--again", "s004")
    assert instant.graded == [("s002", ("scale", "shift")), ("s004", ("scale",))]
    assert "0 change, 4 stay as they were" in said.out


def test_grading_again_tries_anew_what_was_given_up(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    (handed_in / "s002" / "scale.py").write_text("# 4 points, but lost")
    batch(cli, handed_in, pair)
    assert marks(out(handed_in))["s002"] == "2"
    answer, instant._answer = instant._answer, lambda job: instant_answer(instant, job)  # type: ignore[method-assign]
    said = regrade(cli, handed_in, pair, "--again", "s002", "--publish")
    instant._answer = answer  # type: ignore[method-assign]
    assert "s002       2 → 6      of 10  scale +4" in said.out
    assert report_of(out(handed_in), "s002")["flags"] == []


def instant_answer(instant: Instant, job: Any) -> Any:
    """As the slots', but of what was lost before as well."""
    files = {name: text.replace("lost", "") for name, text in job.submission.files.items()}
    well = type(job)(type(job.submission)(job.submission.name, files), job.names, job.seed)
    return Instant._answer(instant, well)


@pytest.mark.parametrize(
    ("student", "said"),
    [
        ("s0002", "nobody called `s0002` has handed in; did you mean `s002`?"),
        ("zzz", "nobody called `zzz` has handed in"),
    ],
)
def test_an_unknown_student_is_not_graded_again(
    student: str, said: str, cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    answer = regrade(cli, handed_in, pair, "--again", "s001", "--again", student)
    assert (answer.code, said in answer.err) == (2, True)
    assert rows(out(handed_in), "SELECT count(*) FROM results") == [(7,)]  # nobody's are gone


@pytest.mark.slow
def test_another_seed_is_a_change_like_any(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    before = pages(handed_in)
    seeds = {job.seed for job in instant.jobs}
    instant.jobs.clear()
    said = regrade(cli, handed_in, pair, "--seed", 6)
    assert "0 change, 4 stay as they were" in said.out
    assert len(instant.jobs) == 4
    assert seeds.isdisjoint(job.seed for job in instant.jobs)
    assert pages(handed_in) == before
    assert batch(cli, handed_in, pair).code == 1  # still under the first
    first = report_of(out(handed_in), "s001")["seed"]
    regrade(cli, handed_in, pair, "--seed", 6, "--publish")
    assert report_of(out(handed_in), "s001")["seed"] != first
    assert len(instant.jobs) == 4
    assert batch(cli, handed_in, pair).code == 2
    assert cli("batch", handed_in, "--out", out(handed_in), "--course", pair).code == 1


def test_a_regrade_that_is_stopped_goes_on_where_it_was(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    before = pages(handed_in)
    instant.jobs.clear()
    touch(pair, "scale")

    def stopping(job: Any) -> None:
        if job.submission.name == "s004":
            raise KeyboardInterrupt

    instant.before = stopping
    assert regrade(cli, handed_in, pair).code == 130
    assert pages(handed_in) == before
    instant.before = lambda job: None
    assert regrade(cli, handed_in, pair).code == 0
    kept = rows(out(handed_in), "SELECT count(*) FROM results WHERE run = 2")[0][0]
    assert kept > 0
    assert len(instant.jobs) == 4 + 4 - kept


# --- with real slots ------------------------------------------------------------------------------


@pytest.mark.slow
def test_who_changes_is_said_before_anybody_is_told(
    cli: Cli, handed_in: Path, pair: Path, tiny_solution: str
) -> None:
    for student in ("s001", "s002", "s003", "s004"):
        (handed_in / student / "scale.py").write_text(f"{tiny_solution}# {student}\n")
    assert batch(cli, handed_in, pair).code == 1
    assert marks(out(handed_in)) == {"s001": "10", "s002": "10", "s003": "10", "s004": "8"}
    adjust(cli, handed_in, pair, "s003", "shift", "+1", "--force")
    before = pages(handed_in)
    suite = pair / "reference" / "shift" / "test_hidden.py"
    text = suite.read_text()
    suite.write_text(text[: text.index('    """One')] + STRICTER)
    said = regrade(cli, handed_in, pair)
    assert said.code == 0
    assert [" ".join(line.split()) for line in said.out.splitlines()[:3]] == [
        "s002 10 → 8 of 10 shift -2",
        "s003 11 → 9 of 10 shift -2",
        "2 change, 2 stay as they were",
    ]
    assert "nothing is published: grader regrade --publish does" in said.out
    assert pages(handed_in) == before
    assert rows(out(handed_in), "SELECT DISTINCT exercise FROM results WHERE run = 2") == [
        ("shift",)
    ]
    said = regrade(cli, handed_in, pair, "--publish")
    assert f"published: {out(handed_in)}" in said.out
    assert marks(out(handed_in)) == {"s001": "10", "s002": "8", "s003": "9", "s004": "8"}
    assert report_of(out(handed_in), "s002")["hashes"]["course"] == load_course(pair).hash
    assert "0 change, 4 stay" in regrade(cli, handed_in, pair).out


# --- what is on trial -----------------------------------------------------------------------------


def test_a_result_that_is_tried_again_and_not_published_stays_what_it_was(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    kept = sorted(rows(out(handed_in), "SELECT * FROM results"))
    before = pages(handed_in)
    instant.before = lambda job: instant.points.update(scale=8)  # what a quieter machine finds
    said = regrade(cli, handed_in, pair, "--again", "s003")
    assert "5 → 10" in said.out
    assert sorted(rows(out(handed_in), "SELECT * FROM results")) == kept
    assert batch(cli, handed_in, pair).code == 1
    assert pages(handed_in) == before
    regrade(cli, handed_in, pair, "--again", "s003", "--publish")
    assert marks(out(handed_in))["s003"] == "10"


@pytest.mark.slow
def test_another_maximum_is_a_change_and_is_not_exported_unseen(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    add_rule(pair, 'extra_credit = ["shift"]')
    said = cli("export", "csv", "--in", out(handed_in), "--course", pair)
    assert (said.code, "not published as they stand now" in said.err) == (2, True)
    said = regrade(cli, handed_in, pair)
    assert "of 8, not 10" in said.out
    assert "4 change, 0 stay as they were" in said.out
    regrade(cli, handed_in, pair, "--publish")
    assert cli("export", "csv", "--in", out(handed_in), "--course", pair).code == 0


def test_another_attempt_is_not_counted_unseen(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    first, second = "one_11_101_scale.py", "one_11_102_scale-1.py"
    folder = hand_in(tmp_path / "class", {first: "# 6 points", second: "# 2 points"})
    hand_in(folder, {"two_12_103_scale.py": "# 3 points"})
    batch(cli, folder, pair, "--attempt", "best")
    assert marks(out(folder))["11"] == "6"
    batch(cli, folder, pair)  # as before
    assert marks(out(folder))["11"] == "6"
    said = batch(cli, folder, pair, "--attempt", "latest")
    assert (said.code, "6 → 2 of 10 points" in said.err) == (2, True)
    assert marks(out(folder))["11"] == "6"
    batch(cli, folder, pair, "--attempt", "latest", "--replace")
    assert marks(out(folder))["11"] == "2"


def test_a_course_whose_points_do_not_add_up_is_refused(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    before = pages(handed_in)
    settings = pair / "reference" / "shift" / "exercise.toml"
    text = settings.read_text()
    settings.write_text(text.replace("points = 2", "points = 3"))
    said = regrade(cli, handed_in, pair, "--publish")
    assert (said.code, "says 10 points, the exercises add up to 11" in said.err) == (2, True)
    assert "grader validate" in said.err
    assert pages(handed_in) == before
