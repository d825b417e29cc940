"""Programs that the course was not made from earn what they should, and hear what is true."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from corpus import accuracy, copies
from corpus.programs import SETS, Program, in_float32, load
from corpus.verdicts import Judge, students_copy

from grader.course.course import Course, load_course
from grader.course.known_mistakes import load_mistakes

ROOT = Path(__file__).parent.parent
UNTRAINED = [each.name for each in load_course(ROOT).exercises if each.training is None]
SIZES = {"known": 150, "outside": 60, "right": 60, "public": 60, "broken": 70}


@pytest.mark.parametrize("name", SETS)
def test_the_corpus_is_large_and_covers_every_exercise(course: Course, name: str) -> None:
    programs = load(name)
    assert len(programs) >= SIZES[name]
    listed = course.choose("core") if name == "public" else course
    assert {program.exercise for program in programs} == set(listed.names)


def test_known_mistakes_are_in_the_catalogue(course: Course) -> None:
    known = {(name, fault.name) for name in course.names for fault in load_mistakes(course[name])}
    labels = {(p.exercise, fault) for p in load("known") for fault in p.faults}
    assert labels - known == set()


@pytest.mark.slow
def test_the_aims_are_met_and_a_students_copy_judges_and_names_alike(
    course: Course, tmp_path: Path, users_cache: None
) -> None:
    there = Judge(course).sampled(load())
    assert accuracy.missed(accuracy.graded(there)) == []
    here = Judge(course, students_copy(course, tmp_path)).complete([*there])
    assert copies.missed(here, there) == []


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("name", UNTRAINED)
def test_a_softmax_in_float32_loses_nothing(name: str, course: Course) -> None:
    text = in_float32(course[name].read("solution.py"))
    program = Program("right", name, "in_float32", "", text)
    (verdict,) = Judge(course).judge_here([program]).values()
    assert verdict.mark == verdict.max_points, verdict.failed


def test_a_verdict_holds_for_the_program_that_it_is_of(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    judge, program = Judge(course), load("right")[0]
    assert judge.kept([program]) == {}
    assert judge.judge([program]) == judge.kept([program])
    assert judge.kept([program])[program].is_done
    changed = replace(program, text=f"{program.text}\n# Another line.\n")
    assert judge.kept([changed]) == {}
    assert Judge(course, copy=course).kept([program]) == {}
