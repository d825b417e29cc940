"""What other tools read of our reports: every format parses back and tells what may be seen."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.course.policy import Policy
from grader.course.visibility import LATER, for_student
from grader.report import (
    Adjustment,
    Diagnosis,
    Excerpt,
    ExerciseResult,
    Explanation,
    Frame,
    Mark,
    Outcome,
    Person,
    Report,
    WrongStep,
)
from grader.reports.data import to_data
from grader.reports.figures import amount
from grader.reports.platforms import prairielearn
from grader.reports.platforms.classroom50 import to_result
from grader.reports.platforms.grades import write_csv
from grader.reports.platforms.gradescope import to_results
from grader.reports.platforms.junit import to_junit

NOW = datetime(2030, 1, 1, tzinfo=UTC)
STRANGE = "<b>&]]> \" ' \x00\x08\x1b[31m\ud800\ufffe\U000fffff \n\r\t end"


def outcome(name: str, verdict: Any = "passed", worth: int = 2, **changes: Any) -> Outcome:
    told = {"message": "the output is 3, where 1 is expected", "kind": "value"}
    return Outcome(
        name=name,
        outcome=verdict,
        points=worth if verdict == "passed" else 0,
        max_points=worth,
        **{"sentence": f"{name} holds.", **(told if verdict == "failed" else {}), **changes},
    )


def exercise(name: str, *tests: Outcome, worth: int = 0, **changes: Any) -> ExerciseResult:
    values: dict[str, Any] = {"title": name.title(), "advice": "", **changes}
    return ExerciseResult(
        name=name,
        points=sum(test.points for test in tests),
        max_points=sum(test.max_points for test in tests) or worth,
        tests=tests,
        **values,
    )


def report(*exercises: ExerciseResult, student: str = "s001", **changes: Any) -> Report:
    return Report(student, 7, "hidden", (), exercises, **changes)


def sample(student: str = "s001") -> Report:
    """Two exercises and one that could not be graded: every verdict there is."""
    scale = exercise(
        "scale",
        outcome("test_a"),
        outcome("test_b", "failed", where=Frame("scale.py", 3, "  return x"), printed="hello"),
        outcome("test_c", "skipped", message='skipped until "test_b holds." passes'),
    )
    mask = exercise("mask", outcome("test_a"), outcome("test_d", "error", message="broke"))
    return report(
        scale, mask, exercise("heads", worth=3, advice="heads.py is missing"), student=student
    )


# --- JUnit ----------------------------------------------------------------------------------------


def test_junit_has_a_suite_a_student_and_a_case_a_check() -> None:
    page = to_junit(sample(name) for name in ("s001", "s002"))
    suites = list(ET.fromstring(page))
    assert [suite.attrib for suite in suites] == [
        {"name": name, "tests": "6", "failures": "2", "errors": "1", "skipped": "1"}
        for name in ("s001", "s002")
    ]
    cases = {(c.get("classname"), c.get("name")): [e.tag for e in c] for c in suites[0]}
    assert cases == {
        ("s001.scale", "test_a holds."): [],
        ("s001.scale", "test_b holds."): ["failure"],
        ("s001.scale", "test_c holds."): ["skipped"],
        ("s001.mask", "test_a holds."): [],
        ("s001.mask", "test_d holds."): ["error"],
        ("s001.heads", "It can be graded."): ["failure"],
    }
    failure = suites[0][1][0]
    assert failure.get("message") == "the output is 3, where 1 is expected"
    assert failure.get("type") == "value"
    assert failure.text == (
        "the output is 3, where 1 is expected\nscale.py:3: return x\nyour code printed:\nhello"
    )
    assert suites[0][2][0].get("message") == 'skipped until "test_b holds." passes'
    assert suites[0][5][0].get("message") == "heads.py is missing"
    assert page.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')


def cases_of(page: str | bytes) -> Iterator[tuple[str | None, str | None]]:
    for case in ET.fromstring(page).iter("testcase"):
        yield case.get("classname"), case.get("name")


def test_no_two_cases_of_junit_have_the_same_name() -> None:
    hidden = [outcome("hidden", sentence="Hidden.") for _ in range(3)]
    again = outcome("again", sentence="Hidden. (2)")
    one = report(exercise("scale", again, *hidden))
    found = list(cases_of(to_junit([one, one])))
    assert len(found) == len(set(found)) == 8
    assert {name for name, _ in found} == {"s001.scale", "s001 (2).scale"}


def test_junit_is_xml_whatever_a_student_wrote() -> None:
    test = outcome("test_a", "failed", message=STRANGE, kind=STRANGE, sentence=STRANGE)
    page = to_junit([report(exercise("scale", test), student=STRANGE)])
    case = ET.fromstring(page.encode())[0][0]
    for text in (case.get("name"), case[0].get("message"), case[0].get("type"), case[0].text):
        assert text is not None
        assert text.replace("\r\n", "\n").replace("\r", "\n").split() == (
            ["<b>&]]>", '"', "'", "[31m\U000fffff", "end"]
        )


@settings(derandomize=True, max_examples=200, deadline=None, database=None)
@given(st.text(st.characters(codec=None), max_size=30))
def test_junit_parses_with_any_text(text: str) -> None:
    test = outcome("test_a", "failed", message=text, sentence=text, printed=text)
    page = to_junit([report(exercise("scale", test), student=text)])
    assert len(list(cases_of(page.encode()))) == 1


def test_junit_of_nobody_is_a_document() -> None:
    assert len(ET.fromstring(to_junit([]))) == 0


# --- Gradescope -----------------------------------------------------------------------------------


def test_gradescope_gets_score_tests_and_texts() -> None:
    results = json.loads(json.dumps(to_results(sample()), allow_nan=False))
    assert results["score"] == 4
    assert {results[key] for key in ("output_format", "test_output_format")} == {"text"}
    assert results["stdout_visibility"] == "hidden"
    tests = results["tests"]
    assert [test["status"] for test in tests] == [
        "passed",
        *["failed"] * 2,
        "passed",
        *["failed"] * 2,
    ]
    assert [test["number"] for test in tests] == ["1.1", "1.2", "1.3", "2.1", "2.2", "3.1"]
    assert [(test["score"], test["max_score"]) for test in tests] == (
        [(2, 2), (0, 2), (0, 2), (2, 2), (0, 2), (0, 3)]
    )
    assert tests[1]["name"] == "Scale: test_b holds."
    assert tests[1]["output"].startswith("the output is 3, where 1 is expected\nscale.py:3")
    assert tests[0]["output"] == ""
    assert tests[5]["output"] == "heads.py is missing"
    assert results["output"] == ""
    assert {test["visibility"] for test in tests} == {"visible"}
    assert {test["output_format"] for test in tests} == {"text"}


def test_gradescope_is_told_the_mark_and_how_it_came_about() -> None:
    changed = replace(sample().exercises[0], adjustment=Adjustment(-0.5, "named oddly"))
    late = replace(
        sample(),
        exercises=(changed,),
        mark=Mark(3.333, 9, 3.5, 1.0, "one day late"),
        notes=("notes.txt was left out",),
        flags=("looks like s002",),
    )
    results = to_results(late)
    assert results["score"] == 3.33
    assert results["output"].split("\n") == [
        "Scale: -0.5 points: named oddly",
        "one day late",
        "note: notes.txt was left out",
    ]


SECRETS = Diagnosis(
    ("over_queries",),
    "MISTAKE",
    "",
    tests=(("test_late",),),
    tie=(Explanation(("other",), "TIE", "", (("test_open", "test_late"),)),),
    first_wrong_step=WrongStep("test_late", "w", "STEP", Excerpt(""), Excerpt("")),
)
HIDING = report(
    exercise(
        "scale",
        outcome("test_open", "failed", message="OPEN"),
        outcome("test_late", "failed", message="LATE", printed="PRINT", visible="after_due"),
        outcome("test_never", "failed", message="NEVER", visible="never"),
        diagnosis=SECRETS,
        advice="All of them fail.",
    )
)


@pytest.mark.parametrize("with_later", [False, True])
def test_gradescope_keeps_back_what_waits_for_the_due_date(with_later: bool) -> None:
    policy = Policy(due=NOW + timedelta(days=1))
    now = for_student(HIDING, policy, NOW)
    later = for_student(HIDING, policy, NOW + timedelta(days=2))
    results = to_results(now, later if with_later else None)
    shown, waits, hidden = results["tests"]
    assert [test["visibility"] for test in results["tests"]] == (
        ["visible", "after_due_date", "hidden"]
    )
    seen_now = results["output"] + shown["name"] + shown["output"]
    assert "OPEN" in seen_now
    assert not [word for word in ("LATE", "PRINT", "MISTAKE", "STEP") if word in seen_now]
    for word in ("LATE", "PRINT", "MISTAKE", "TIE", "STEP"):
        assert (word in waits["output"]) is with_later
    assert (waits["output"] == LATER) is not with_later
    assert "NEVER" not in json.dumps(results)
    assert "test_never" not in json.dumps(results)
    assert hidden["output"] == ""


def test_a_mistake_that_needs_a_later_test_is_not_told_with_an_earlier_one() -> None:
    # As it is seen after the due date, where nothing else would keep it back.
    both = replace(SECRETS, tests=(("test_open",), ("test_late",)), tie=())
    seen = report(replace(HIDING.exercises[0], diagnosis=both))
    shown, waits, _ = to_results(seen)["tests"]
    assert "MISTAKE" not in shown["output"]
    assert "→ MISTAKE\nFirst wrong step: STEP" in waits["output"]


def test_a_mistake_that_needs_a_test_that_is_not_there_is_not_told() -> None:
    hidden = replace(SECRETS, tests=(("test_open",), ("test_gone",)), tie=())
    seen = report(replace(HIDING.exercises[0], diagnosis=hidden))
    assert "MISTAKE" not in json.dumps(to_results(seen))


def test_a_diagnosis_that_the_course_shows_later_is_not_told_before() -> None:
    policy = Policy(due=NOW + timedelta(days=1), show={"diagnosis": "after_due"})
    known = replace(SECRETS, tests=(("test_open",),), tie=())
    what = report(replace(HIDING.exercises[0], diagnosis=known))
    now = for_student(what, policy, NOW)
    later = for_student(what, policy, NOW + timedelta(days=2))
    assert "MISTAKE" in to_results(later)["tests"][0]["output"]
    assert to_results(now, later)["tests"][0]["output"] == "OPEN"


def test_ties_are_told_as_such() -> None:
    tied = replace(
        SECRETS, tests=(("test_open",),), tie=(replace(SECRETS.tie[0], tests=(("test_open",),)),)
    )
    seen = report(replace(HIDING.exercises[0], diagnosis=tied))
    assert to_results(seen)["tests"][0]["output"] == (
        "OPEN\n→ MISTAKE\n→ or: TIE\nFirst wrong step: STEP"
    )


# --- PrairieLearn ---------------------------------------------------------------------------------


def test_prairielearn_gets_a_share_and_tests() -> None:
    results = json.loads(json.dumps(prairielearn.to_results(sample()), allow_nan=False))
    tests = results.pop("tests")
    assert results == {
        "gradable": True,
        "score": round(4 / 13, 6),
        "message": sample().advice,
        "output": "",
    }
    assert tests[1] == {
        "name": "test_b holds.",
        "description": "Scale",
        "points": 0,
        "max_points": 2,
        "message": "the output is 3, where 1 is expected\nscale.py:3: return x",
        "output": "hello",
    }
    assert [(test["points"], test["max_points"]) for test in tests] == (
        [(2, 2), (0, 2), (0, 2), (2, 2), (0, 2), (0, 3)]
    )


@pytest.mark.parametrize(
    ("mark", "share"),
    [(Mark(7.5, 10, 7.5), 0.75), (Mark(12, 10, 12), 1.0), (Mark(0, 0, 0), 0.0)],
)
def test_prairielearn_gets_the_mark_as_a_share_from_0_to_1(mark: Mark, share: float) -> None:
    assert prairielearn.to_results(replace(sample(), mark=mark))["score"] == share


def test_prairielearn_is_told_what_cannot_be_loaded_and_takes_no_attempt_for_it() -> None:
    broken = outcome("test_a", "failed", loading=True, message="'(' was never closed")
    missing = exercise("heads", worth=3, advice="there is no heads.py")
    assert prairielearn.to_results(report(exercise("scale", broken, broken), missing)) == {
        "gradable": False,
        "score": 0.0,
        "format_errors": ["Scale: '(' was never closed", "Heads: there is no heads.py"],
    }
    half = report(exercise("scale", broken), exercise("mask", outcome("test_b", "failed")))
    assert prairielearn.to_results(half)["gradable"]


def test_prairielearn_gets_no_more_than_it_takes() -> None:
    long = [outcome(f"test_{n}", "failed", printed="é" * 3000) for n in range(100)]
    results = prairielearn.to_results(report(exercise("scale", *long)))
    assert len(json.dumps(results, indent=2)) < prairielearn.MAX_BYTES
    assert results["output"] == prairielearn.CUT
    assert [test["max_points"] for test in results["tests"]] == [2] * 100


# --- Classroom 50 ---------------------------------------------------------------------------------

RUNNER = {
    "CLASSROOM": "c",
    "ASSIGNMENT": "a",
    "SUBMISSION_TAG": "submit/1",
    "COMMIT_URL": "https://git.example/commit/1",
    "RELEASE_URL": "https://git.example/releases/1",
    "REVIEW_URL": "https://git.example/compare/0...1",
}


def test_classroom50_gets_whole_points_and_what_the_runner_says() -> None:
    result = json.loads(json.dumps(to_result(sample(), RUNNER, "2030-01-01T00:00:00Z")))
    tests = result.pop("tests")
    assert result == {
        "schema": "classroom50/result/v1",
        "classroom": "c",
        "assignment": "a",
        "submission": "submit/1",
        "commit": "https://git.example/commit/1",
        "release": "https://git.example/releases/1",
        "review": "https://git.example/compare/0...1",
        "datetime": "2030-01-01T00:00:00Z",
        "score": 4,
        "max-score": 13,
    }
    assert tests[1] == {
        "test-name": "scale: test_b holds.",
        "passed": False,
        "score": 0,
        "max-score": 2,
    }
    assert tests[5]["test-name"] == "heads: It can be graded."
    assert sum(test["score"] for test in tests) == result["score"]
    assert sum(test["max-score"] for test in tests) == result["max-score"]
    assert len({test["test-name"] for test in tests}) == 6


def test_classroom50_without_a_runner_has_empty_strings() -> None:
    result = to_result(sample(), {}, "now")
    names = ("classroom", "assignment", "submission", "commit", "release", "review")
    assert [result[name] for name in names] == [""] * 6
    assert to_result(sample(), {"COMMIT_URL": "u"}, "now")["review"] == "u"


@pytest.mark.parametrize(
    ("points", "most", "told"),
    [
        (7.5, 10, (8, 10)),
        (7.49, 10, (7, 10)),
        (12, 10, (10, 10)),
        (-1, 10, (0, 10)),
        (2.5, 2.5, (3, 3)),
    ],
)
def test_classroom50_rounds_a_mark(points: float, most: float, told: tuple[int, int]) -> None:
    result = to_result(replace(sample(), mark=Mark(points, most, points)), RUNNER, "")
    assert (result["score"], result["max-score"]) == told
    assert type(result["score"]) is type(result["max-score"]) is int


# --- marks as CSV ---------------------------------------------------------------------------------


def rows(names: list[str], *reports: Report) -> list[list[str]]:
    stream = io.StringIO(newline="")
    write_csv(stream, names, (one for one in reports))
    assert stream.getvalue().startswith("\ufeffsubmission,")
    assert stream.getvalue().endswith("\r\n")
    return list(csv.reader(io.StringIO(stream.getvalue()[1:], newline="")))


def test_marks_of_a_class_say_whose_they_are_and_how_they_came_about() -> None:
    late = replace(
        sample("s002"),
        exercises=(replace(sample().exercises[1], adjustment=Adjustment(1.5, "by hand")),),
        mark=Mark(3.15, 13, 3.5, 1.25, "late"),
        person=Person("Student 002", "s002@school.example", "s002", "2", "A"),
        attempt=2,
        submitted="2030-01-01T00:00:00+00:00",
        flags=("a", "b"),
    )
    header, first, second = rows(["scale", "mask", "heads"], sample(), late)
    assert header == [
        *("submission", "points", "max_points", "name", "section", "email", "login", "number"),
        *("earned", "late_days"),
        *("attempt", "submitted", "flags", "state", "scale", "mask", "heads"),
    ]
    assert first == [
        *("s001", "4", "13", "", "", "", "", "", "4", "0", "1", "", "", "error", "2", "2", "0"),
    ]
    assert second == [
        *("s002", "3.15", "13", "Student 002", "A", "s002@school.example", "s002", "2"),
        *("3.5", "1.25", "2"),
        *("2030-01-01T00:00:00+00:00", "a; b", "error", "", "3.5", ""),
    ]


@pytest.mark.parametrize(
    ("text", "written"),
    [("=1+1", "'=1+1"), ("-1", "'-1"), (" =1", " '=1"), ("'=1", "''=1"), ("a;=1", "a;'=1")],
)
def test_every_column_of_the_marks_holds_text_and_no_formula(text: str, written: str) -> None:
    person = Person(name=text, email=text, login=text, number=text, section=text)
    made = replace(sample(text), person=person, flags=(text,), submitted=text)
    header, row = rows([text], made)
    assert [row[place] for place in (0, *range(3, 8), 11, 12)] == [written] * 8
    assert header[-1] == written


def test_reports_from_before_marks_can_be_written() -> None:
    data = to_data(sample())
    for key in ("person", "attempt", "submitted", "flags", "mark"):
        del data[key]
    for one in data["exercises"]:
        del one["adjustment"]
    old = msgspec.convert(data, Report)
    stream = io.StringIO(newline="")
    write_csv(stream, ["scale"], [old])
    assert stream.getvalue().split("\r\n")[1] == "s001,4,13,,,,,,4,0,1,,,error,2"
    assert to_results(old)["score"] == to_result(old, {}, "")["score"] == 4


class Counting(io.StringIO):
    """A stream that counts the lines it was given, and keeps none."""

    lines = 0

    def write(self, text: str) -> int:
        self.lines += 1
        return len(text)


def test_marks_are_written_while_the_reports_come() -> None:
    stream, seen = Counting(), []

    def reports() -> Iterator[Report]:
        for n in range(1000):
            seen.append(stream.lines)
            yield sample(f"s{n}")

    write_csv(stream, ["scale"], reports())
    assert seen == list(range(2, 1002))  # the mark of the encoding is written first


def test_amounts_have_two_decimals_at_most() -> None:
    found = [amount(value) for value in (3, 3.0, 2.5, 1 / 3, -0.001, 100.0, 0)]
    assert found == ["3", "3", "2.5", "0.33", "0", "100", "0"]
