"""Gradebooks before and after they are filled in, the marks for them, and refusals."""

from __future__ import annotations

import re
from typing import Any

import pytest

from grader.classroom.gradebooks import StudentMark
from grader.errors import RequestError
from grader.report import Person

FILLED = re.compile(r"\[\[(.*?)\|(.*?)\]\]", re.DOTALL)


def both(page: str, start: bytes = b"") -> tuple[bytes, bytes]:
    """Return a file before and after; `[[old|new]]` marks the cells that change."""
    return start + FILLED.sub(r"\1", page).encode(), start + FILLED.sub(r"\2", page).encode()


def mark(student: str, points: float, most: float = 10, **person: str) -> StudentMark:
    """A student's mark, out of `most` points."""
    return StudentMark(student, Person(**person), points, most)


def refused(fill: Any, *arguments: Any, **options: Any) -> str:
    """Return what the refusal of a call says."""
    with pytest.raises(RequestError) as error:
        fill(*arguments, **options)
    return f"{error.value.message}\n{error.value.remedy}"
