"""JUnit XML for continuous integration: a suite per student, a case per check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from grader.report import Report, Verdict
from grader.reports.checks import GIVEN_BACK_NAME, ReportedCheck, checks, unique
from grader.reports.remarks import UNKNOWN, Checkout

ELEMENTS: dict[Verdict, str] = {"failed": "failure", "error": "error", "skipped": "skipped"}
TOTALS: dict[Verdict, str] = {"failed": "failures", "error": "errors", "skipped": "skipped"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(reports: Iterable[Report], checkout: Checkout = UNKNOWN) -> str:
    """Return all reports in one document. No two cases have the same class and name.

    The seconds of an exercise are given to its cases in equal parts.
    """
    root = ET.Element("testsuites", name="grader")
    taken: Counter[str] = Counter()
    for report in reports:
        cases = [check for check in checks(report) if check.test.name != GIVEN_BACK_NAME]
        _add_suite(root, unique(_text(report.submission), taken), cases, checkout)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add_suite(root: ET.Element, name: str, cases: list[ReportedCheck], checkout: Checkout) -> None:
    outcomes = Counter(check.test.outcome for check in cases)
    totals = {attribute: str(outcomes[outcome]) for outcome, attribute in TOTALS.items()}
    suite = ET.SubElement(root, "testsuite", {"name": name, "tests": str(len(cases)), **totals})
    if checkout.seconds:
        suite.set("time", f"{sum(checkout.seconds.values()):.3f}")
    of_exercise = Counter(check.exercise.name for check in cases)
    for check in cases:
        class_name = _text(f"{name}.{check.exercise.name}")
        case = ET.SubElement(suite, "testcase", classname=class_name, name=_text(check.name))
        if check.exercise.name in checkout.seconds:
            seconds = checkout.seconds[check.exercise.name] / of_exercise[check.exercise.name]
            case.set("time", f"{seconds:.3f}")
        if place := checkout.place_of(check.exercise, check.test):
            case.set("file", _text(place.file))
            case.set("line", str(place.line))
        if check.test.outcome in ELEMENTS:
            _add_verdict(case, check)


def _add_verdict(case: ET.Element, check: ReportedCheck) -> None:
    test = check.test
    element = ET.SubElement(case, ELEMENTS[test.outcome], message=_text(test.message))
    if test.outcome != "skipped":
        element.set("type", _text(test.kind))
        element.text = _text(check.details)


def _text(text: str) -> str:
    """Return a text without the characters that XML does not allow."""
    return _NOT_XML.sub("", text)
