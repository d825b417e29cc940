"""What the course hides from students is in no view of a report."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from made_reports import DIAGNOSIS, EXCERPT, NOW, STEP, diagnosed, outcome, report, shown

from grader.course.policy import Policy
from grader.course.visibility import HIDDEN_SENTENCE, LATER, SKIPPED_UNTIL, for_student
from grader.report import HeadView, LossCurve, Reached
from grader.reports import FORMATS, render
from grader.reports.remarks import Checkout, Place

# --- hidden tests ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_a_test_that_is_never_visible_is_in_no_view(form: str) -> None:
    secret = outcome(
        visible="never",
        sentence="SECRET-1",
        message="SECRET-2",
        name="SECRET-3",
        printed="SECRET-4",
    )
    page = shown(form, for_student(report(secret), Policy(), NOW))
    assert "SECRET" not in page
    assert HIDDEN_SENTENCE in page.replace("\\", "")


def test_a_remark_beside_the_code_tells_nothing_of_a_hidden_test() -> None:
    hidden = diagnosed(outcome(visible="never", sentence="SECRET", message="SECRET"))
    checkout = Checkout(lambda result, test: Place("scale.py", 1))
    page = render(for_student(hidden, Policy(), NOW), "codequality", checkout=checkout)
    assert HIDDEN_SENTENCE in page
    assert "SECRET" not in page
    assert DIAGNOSIS.says not in page


def test_a_test_skipped_for_a_hidden_one_does_not_reveal_its_sentence() -> None:
    secret = outcome(visible="never", sentence="SECRET", name="test_secret")
    other = outcome("skipped", message=SKIPPED_UNTIL.format("test_secret"), name="test_other")
    third = outcome("skipped", message=SKIPPED_UNTIL.format("test_other"), name="test_third")
    tests = for_student(report(secret, other, third), Policy(), NOW).exercises[0].tests
    assert tests[1].message == f'skipped until "{HIDDEN_SENTENCE}" passes'
    assert tests[2].message == 'skipped until "Rows sum to one." passes'


def test_details_are_shown_only_after_the_due_date() -> None:
    what = report(outcome(visible="after_due", expected=EXCERPT))
    before = for_student(what, Policy(due=NOW + timedelta(days=1)), NOW).exercises[0].tests[0]
    assert (before.sentence, before.message, before.expected) == ("Rows sum to one.", LATER, None)
    after = for_student(what, Policy(due=NOW - timedelta(days=1)), NOW).exercises[0].tests[0]
    assert after == what.exercises[0].tests[0]


def test_hiding_changes_no_points() -> None:
    what = report(outcome("passed", visible="never"), outcome(visible="after_due"))
    assert for_student(what, Policy(due=NOW), NOW).points == what.points == 2


# --- diagnoses and pictures -----------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_a_diagnosis_that_rests_on_hidden_tests_is_in_no_view(form: str) -> None:
    hidden = for_student(diagnosed(outcome(visible="never")), Policy(), NOW)
    assert hidden.exercises[0].diagnosis is None
    page = shown(form, hidden)
    assert DIAGNOSIS.says not in page
    assert STEP.says not in page


def test_a_diagnosis_rests_on_the_tests_that_are_shown() -> None:
    seen = replace(DIAGNOSIS, tests=(("test_x", "test_seen"),))
    tests = outcome(visible="after_due"), outcome(name="test_seen")
    before = for_student(
        diagnosed(*tests, diagnosis=seen), Policy(due=NOW + timedelta(days=1)), NOW
    )
    found = before.exercises[0].diagnosis
    assert (found.says, found.tests, found.first_wrong_step) == (
        DIAGNOSIS.says,
        (("test_seen",),),
        STEP,  # it comes from a case, not from a test
    )
    after = for_student(diagnosed(*tests, diagnosis=seen), Policy(due=NOW - timedelta(days=1)), NOW)
    assert after.exercises[0].diagnosis == seen


def test_a_tie_that_rests_on_hidden_tests_is_not_shown() -> None:
    other = replace(DIAGNOSIS.tie[0], tests=(("test_hidden",),))
    tests = outcome(), outcome(name="test_hidden", visible="never")
    tied = replace(DIAGNOSIS, tie=(other,))
    found = for_student(diagnosed(*tests, diagnosis=tied), Policy(), NOW).exercises[0].diagnosis
    assert (found.says, found.tie) == (DIAGNOSIS.says, ())


def test_each_of_two_mistakes_needs_a_shown_test() -> None:
    two = replace(DIAGNOSIS, faults=("a", "b"), tests=(("test_x",), ("test_seen",)))
    tests = outcome(visible="never"), outcome(name="test_seen")
    found = for_student(diagnosed(*tests, diagnosis=two), Policy(), NOW)
    assert found.exercises[0].diagnosis is None


def test_a_mistake_that_fails_no_check_hides_no_diagnosis() -> None:
    two = replace(DIAGNOSIS, faults=("a", "b"), tests=(("test_x",), ()))
    found = for_student(diagnosed(outcome(), diagnosis=two), Policy(), NOW)
    assert found.exercises[0].diagnosis == two


def test_what_a_hidden_test_finds_of_a_training_is_in_no_view() -> None:
    what = report(outcome(visible="never"), outcome("passed", name="test_other"))
    curve = LossCurve.of("it", [(0, 3.0), (1, 1.0)], [Reached("SECRET", 0.4, 0.95)])
    what = replace(what, exercises=(replace(what.exercises[0], curves=(curve,)),))
    (seen,) = for_student(what, Policy(), NOW).exercises[0].curves
    assert seen == replace(curve, reached=())
    tests = tuple(replace(test, visible="always") for test in what.exercises[0].tests)
    shown_all = replace(what, exercises=(replace(what.exercises[0], tests=tests),))
    assert for_student(shown_all, Policy(), NOW).exercises[0].curves == (curve,)
    hidden = for_student(shown_all, Policy(show={"tests": "never"}), NOW)
    assert hidden.exercises[0].curves == (seen,)


def test_heads_are_not_drawn_where_every_failure_is_hidden() -> None:
    view = HeadView(("a",), (((1.0,),),), (((0.5,),),))
    for test, drawn in ((outcome(visible="never"), False), (outcome(), True)):
        what = report(test)
        what = replace(what, exercises=(replace(what.exercises[0], head_view=view),))
        found = for_student(what, Policy(), NOW)
        assert (found.exercises[0].head_view is not None) is drawn
        assert ("head 0, yours" in shown("html", found)) is drawn
