"""A copy of the installed course that another person has: its exercise, and its public suite."""

from __future__ import annotations

from pathlib import Path

NAME = "masked_softmax"
SOLUTION = Path(__file__).parent.parent / "reference" / NAME / "solution.py"


def suite_of(clone: Path) -> Path:
    return clone / "exercises" / "tests" / f"test_{NAME}.py"
