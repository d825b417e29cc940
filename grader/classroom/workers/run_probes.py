"""The seed of a run's probes, and the folder of what known mistakes answer to them.

Every run has a seed of its own. One that was stopped leaves it behind, so that whoever continues
works no answer out again, and names mistakes by the same calls. Imports no torch.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from types import TracebackType

from grader.files import STATE
from grader.grading.seeds import kept_seed

FOLDER, SEED, ANSWERS = "run", "seed.txt", "answers"


class RunProbes:
    """What a run keeps in a folder of results until it comes to its end; a context manager."""

    def __init__(self, results: Path) -> None:
        self._results, self._folder = results, results / STATE / FOLDER

    @property
    def answers(self) -> Path:
        """The folder for what known mistakes answer."""
        return self._folder / ANSWERS

    def seed(self) -> int:
        """Return the seed of the run that was stopped, or else a new one."""
        return kept_seed(self._folder / SEED, self._results)

    def __enter__(self) -> RunProbes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if kind is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                self._folder.parent.rmdir()
