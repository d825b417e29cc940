"""Programs that the course was not made from earn what they should, and hear what is true.

Every `STEP`th program is graded, and all of them with `CORPUS=all`. `make accuracy` grades all of
them, too, and keeps the tables of the pages.
"""

from __future__ import annotations

import os

import pytest
from corpus import accuracy
from corpus.accuracy import SETS, Graded

from grader.course.course import Course
from grader.course.faults import load_faults
from grader.sandbox.host.zygote import Zygote

STEP = 1 if os.environ.get("CORPUS") == "all" else 6
SIZES = {"known": 150, "outside": 60, "right": 60, "public": 60, "broken": 70}


@pytest.fixture(scope="module")
def graded(course: Course, zygote: Zygote) -> list[Graded]:
    return accuracy.measure(course, accuracy.load()[::STEP], zygote)


@pytest.mark.parametrize("name", SETS)
def test_the_corpus_is_large_and_covers_every_exercise(course: Course, name: str) -> None:
    programs = accuracy.load(name)
    assert len(programs) >= SIZES[name]
    listed = course if name in ("known", "outside", "right") else course.choose("core")
    assert {program.exercise for program in programs} == set(listed.names)


def test_known_mistakes_are_in_the_catalogue(course: Course) -> None:
    known = {(name, fault.name) for name in course.names for fault in load_faults(course[name])}
    labels = {(p.exercise, fault) for p in accuracy.load("known") for fault in p.faults}
    assert labels - known == set()


@pytest.mark.slow
def test_the_aims_are_met(graded: list[Graded]) -> None:
    assert accuracy.missed(graded) == []
