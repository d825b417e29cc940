"""A disk that has no room for some pages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.classroom import publishing
from grader.files import Draft


def failing(
    patched: pytest.MonkeyPatch, error: BaseException, when: Callable[[Path], bool]
) -> None:
    """Have the disk refuse the end of some pages."""
    real = publishing.writing_whole

    @contextlib.contextmanager
    def writing_whole(path: Path, later: list[Draft] | None = None) -> Iterator[Any]:
        with real(path, later) as file:
            yield file
            if when(path):
                raise error

    patched.setattr(publishing, "writing_whole", writing_whole)
