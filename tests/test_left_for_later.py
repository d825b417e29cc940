"""Exercises can be left for later: the others have reports at once, and nothing runs twice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from classroom import Instant, hand_in, marks, report_of
from commandline import Cli


@pytest.fixture
def grade(cli: Cli, instant: Instant, pair: Path, tmp_path: Path) -> Any:
    hand_in(
        tmp_path / "class",
        {f"{s}/{name}.py": f"# {s}\n" for s in ("s001", "s002") for name in ("scale", "shift")},
    )

    def grading(*more: object) -> Any:
        instant.jobs.clear()
        taken = [] if "--resume" in more else [tmp_path / "class", "--seed", 5]
        return cli("batch", *taken, "--out", tmp_path / "out", "--course", pair, *more)

    return grading


@pytest.mark.parametrize("choice", [("--without", "shift"), ("--only", "scale")])
def test_what_is_left_for_later_is_graded_later(
    grade: Any, instant: Instant, tmp_path: Path, choice: tuple[str, str]
) -> None:
    said = grade(*choice)
    assert instant.graded == [("s001", ("scale",)), ("s002", ("scale",))]
    assert "left for later: shift    grader batch --resume --out" in said.out
    out = tmp_path / "out"
    assert marks(out) == {"s001": "8", "s002": "8"}
    report = report_of(out, "s001")
    assert report["flags"] == ["shift is left for later, and not graded yet"]
    assert report["exercises"][1]["advice"] == "left for later, and not graded yet"
    said = grade("--resume")
    assert instant.graded == [("s001", ("shift",)), ("s002", ("shift",))]
    assert "left for later" not in said.out
    assert marks(out) == {"s001": "10", "s002": "10"}
    assert report_of(out, "s001")["flags"] == []
    grade("--resume")
    assert instant.graded == []


def test_both_and_unknown_names_are_refused(grade: Any) -> None:
    assert "leave out one" in grade("--only", "scale", "--without", "shift").err
    assert "did you mean `shift`" in grade("--without", "shitf").err


def test_an_exercise_that_trains_is_a_job_of_its_own(
    grade: Any, instant: Instant, pair: Path
) -> None:
    settings = pair / "reference" / "shift" / "exercise.toml"
    settings.write_text(f"{settings.read_text()}\n[training]\nseconds = 40\n")
    grade()
    assert sorted(instant.graded) == [
        (student, (name,)) for student in ("s001", "s002") for name in ("scale", "shift")
    ]


def test_an_exercise_whose_training_rules_are_wrong_says_where(grade: Any, pair: Path) -> None:
    settings = pair / "reference" / "shift" / "exercise.toml"
    settings.write_text(f"{settings.read_text()}\n[training]\nsecond = 40\n")
    said = grade()
    assert said.code == 2
    assert re.search(r"shift/exercise.toml: .*second", said.err)
