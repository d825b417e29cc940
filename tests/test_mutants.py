"""Mutants of the references fail their suites, or do what the references do.

The samples of a few exercises are examined here, and of all by `make prove`; `make mutants` grades
all mutants, for the table of docs/suites.md.
"""

from __future__ import annotations

import ast

import pytest
from mutants import sampled
from mutants.mutator import mutants, plain, sample
from turns import in_turn

from grader.course.course import Course

SUM = '''
"""Sums."""


def total(xs, start=0):
    """Return the sum."""
    for x in xs:
        start = start + x
    return start
'''


def test_a_mutant_is_valid_and_differs_from_the_original_and_from_the_others() -> None:
    found = [mutant.text for mutant in mutants(SUM, pairs=20)]
    assert len({plain(SUM), *found}) == len(found) + 1
    assert all(ast.parse(text) for text in found)


@pytest.mark.parametrize(
    "line",
    [
        *("start = start - x", "start = x + start", "start = start", "start = start.add_(x)"),
        *("start = (start + x).detach()", "start = start + xs", "start = start + -x", "pass"),
        *("def total(xs, start=1):", "def total(xs, start):", "return start.squeeze()"),
    ],
)
def test_an_operator_changes_one_thing(line: str) -> None:
    texts = [mutant.text for mutant in mutants(SUM, pairs=0)]
    assert any(line in [each.strip() for each in text.splitlines()] for text in texts)


def test_a_sample_is_drawn_by_its_seed() -> None:
    assert sample(SUM, 20, seed=1) == sample(SUM, 20, seed=1) != sample(SUM, 20, seed=2)
    assert {mutant.order for mutant in sample(SUM, 20)} == {1, 2}


@pytest.mark.slow
def test_suites_accept_no_mutant_that_is_wrong(course: Course, users_cache: None) -> None:
    wrong = []
    names = [name for name in course.names if course[name].training is None]
    for _, examined in sampled.examine_samples(course, in_turn(names)):
        wrong += sampled.accepted(course, examined)
    assert wrong == []
