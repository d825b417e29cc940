"""JUnit XML, which continuous integration shows: a suite a student, a case a check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from grader.reports.checks import Check, checks, unique

ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}
TOTALS = {"failed": "failures", "error": "errors", "skipped": "skipped"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(reports: Iterable[Mapping[str, Any]]) -> str:
    """All reports in one document. No two cases have the same class and name."""
    root = ET.Element("testsuites", name="grader")
    taken: Counter[str] = Counter()
    for report in reports:
        _add_suite(root, unique(_text(report["submission"]), taken), list(checks(report)))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add_suite(root: ET.Element, name: str, found: list[Check]) -> None:
    outcomes = Counter(check.outcome for check in found)
    totals = {attribute: str(outcomes[outcome]) for outcome, attribute in TOTALS.items()}
    suite = ET.SubElement(root, "testsuite", {"name": name, "tests": str(len(found)), **totals})
    for check in found:
        case = ET.SubElement(
            suite, "testcase", classname=_text(f"{name}.{check.exercise}"), name=_text(check.name)
        )
        if check.outcome in ELEMENTS:
            _add_verdict(case, check)


def _add_verdict(case: ET.Element, check: Check) -> None:
    element = ET.SubElement(case, ELEMENTS[check.outcome], message=_text(check.message))
    if check.outcome != "skipped":
        element.set("type", _text(check.kind))
        element.text = _text(check.says)


def _text(text: str) -> str:
    """A text without what no XML document may hold."""
    return _NOT_XML.sub("", text)
