"""The code quality report of a GitLab job, which a merge request shows beside the code."""

from __future__ import annotations

import hashlib
from typing import Any

from grader.report import Report
from grader.reports.remarks import Checkout, Remark, remarks


def to_code_quality(report: Report, checkout: Checkout) -> list[dict[str, Any]]:
    """Return the remarks as JSON data; one on a file that is missing has no place there."""
    return [
        {
            "description": f"{remark.title}. {remark.named or remark.message}",
            "check_name": remark.exercise,
            "fingerprint": _fingerprint(remark, remark.place.file),
            "severity": "major",
            "location": {"path": remark.place.file, "lines": {"begin": remark.place.line or 1}},
        }
        for remark in remarks(report, checkout)
        if remark.place is not None
    ]


def _fingerprint(remark: Remark, file: str) -> str:
    """Return what GitLab tells old remarks from new ones by: no number of a single run counts."""
    parts = (remark.exercise, remark.check, remark.named, file)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
