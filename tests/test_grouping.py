"""The same unknown mistake in many spellings is one group, and two mistakes are two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unnamed import MISTAKES, programs

from grader.classroom.mistakes import UnnamedGroups
from grader.course.course import Course
from grader.grading import signatures
from grader.grading.diagnosis.computed import catalogue_of
from grader.grading.diagnosis.signing import signature_of
from grader.grading.seeds import PUBLIC_SEED


def signed(*totals: float, whole: bool = True, slack: float = 1e-4) -> str:
    """The signature of a mistake that shows in as many cases."""
    entries = [signatures.entry(f"case_{at}", "", each, slack) for at, each in enumerate(totals)]
    return signatures.written(entries, [], whole=whole)


@pytest.mark.slow
@pytest.mark.parametrize("exercise", ["layer_norm", "feed_forward"])
def test_each_mistake_is_a_group_of_its_own(course: Course, exercise: str) -> None:
    groups, catalogue = UnnamedGroups(), catalogue_of(course, course[exercise], PUBLIC_SEED)
    made: dict[str, set[str]] = {}
    for each in programs(course, exercise):
        program = catalogue.respondent(each.text)
        answers = {case.name: program.answer(case) for case in catalogue.cases}
        signature = signature_of(catalogue, answers, whole=True)
        made.setdefault(groups.group(exercise, signature), set()).add(each.mistake)
    assert sorted(made.values(), key=min) == [{name} for name in sorted(MISTAKES[exercise])]


def test_rounding_makes_no_other_mistake() -> None:
    assert signatures.is_same_mistake(signed(1.0, -2.0), signed(1.00003, -2.00003))
    assert not signatures.is_same_mistake(signed(1.0, -2.0), signed(1.0, -2.01))
    assert not signatures.is_same_mistake(signed(1.0, -2.0), signed(1.0))


def test_of_a_call_that_does_not_end_only_what_came_before_is_compared() -> None:
    cut = signed(1.0, whole=False)
    assert signatures.is_same_mistake(signed(1.0, -2.0), cut)
    assert not signatures.is_same_everywhere(signed(1.0, -2.0), cut)
    assert not signatures.is_same_mistake(signed(1.5, -2.0), cut)
    longer = signed(1.0, -2.0, whole=False)
    assert not signatures.is_same_mistake(signed(1.0), longer)
    assert not signatures.is_same_mistake(longer, signed(1.0))
    assert signatures.is_same_mistake(longer, cut)


def test_edges_count_only_where_nothing_else_is_wrong() -> None:
    main = [signatures.entry("values", "", 1.0, 1e-4)]
    edge, other = (signatures.entry("views", form, 0.0) for form in ("nan", "error"))
    one, two = (signatures.written(main, [each], whole=True) for each in (edge, other))
    assert signatures.is_same_mistake(one, two)
    assert not signatures.is_same_everywhere(one, two)
    one, two = (signatures.written([], [each], whole=True) for each in (edge, other))
    assert not signatures.is_same_mistake(one, two)


def test_a_signature_is_small_however_many_cases_are_wrong() -> None:
    text = signed(*(-1.23456789e-11 * at for at in range(500)), slack=1.234e-11)
    assert 1000 < len(text) <= signatures.MAX_CHARACTERS
    assert signatures.is_same_mistake(text, text)


@pytest.mark.slow
@given(st.text(max_size=60) | st.from_regex(r"\[\[\[.*\]\],\[\],true\]", fullmatch=True))
def test_a_damaged_signature_is_like_no_other(text: str) -> None:
    assert not signatures.is_same_mistake(text, signed(1.0))
    assert not signatures.is_same_mistake("", text)
    assert UnnamedGroups().group("one", text).startswith("one-")
