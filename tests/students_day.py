"""What a student does from the first command to the first solved exercise, on any system.

    python tests/students_day.py

uses the grader that is installed, in a folder that is removed afterwards. It imports nothing of the
grader and of the other tests, of which some need Linux.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

# A solution as a student may write it: not the reference's.
WORKS = """
import torch


def masked_softmax(X, valid_lens=None):
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.shape not in (X.shape[:1], X.shape[:2]):
        raise ValueError("valid_lens has the wrong shape")
    if (valid_lens < 0).any() or (valid_lens > X.shape[-1]).any():
        raise ValueError("a length is not in 0 ... n_keys")
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    places = torch.arange(X.shape[-1], device=X.device)
    beyond = places >= lens[..., None]
    weights = torch.softmax(X.masked_fill(beyond, -torch.inf), dim=-1)
    return weights.masked_fill(beyond, 0.0)
"""
MISTAKE = "The softmax runs over the queries"


class Said(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str


Grader = Callable[..., Said]


def spend(folder: Path, grader: Grader) -> None:
    """Begin, hand in something wrong, read a hint, solve it, and start over."""
    assert grader("init", "mine", at=folder).code == 0
    home = folder / "mine"
    file = home / "exercises" / "masked_softmax.py"

    file.write_text(WORKS.replace("dim=-1", "dim=-2"), "utf-8")
    wrong = grader("check", "masked_softmax", at=home)
    assert wrong.code == 1, wrong.out
    assert MISTAKE in " ".join(wrong.out.split()), wrong.out
    assert grader("hint", "masked_softmax", at=home).out.startswith("hint 1 of")

    file.write_text(WORKS, "utf-8")
    right = grader("check", "masked_softmax.py", at=home)
    assert (right.code, "passed" in right.out) == (0, True), right.out
    assert "15 / 15  passed" in grader("status", at=home).out
    assert "next: grader check dictionary_lookup" in grader(at=home).out

    assert "is kept as" in grader("reset", "masked_softmax", at=home).out
    assert "kept as" not in grader("reset", "masked_softmax", at=home).out


def installed(*arguments: str, at: Path) -> Said:
    """Run the grader that is installed."""
    command = [sys.executable, "-m", "grader", *arguments]
    run = subprocess.run(
        command, cwd=at, capture_output=True, text=True, encoding="utf-8", check=False
    )
    print(f"$ grader {' '.join(arguments)}\n{run.stdout}{run.stderr}", flush=True)
    return Said(run.returncode, run.stdout)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        spend(Path(place), installed)
