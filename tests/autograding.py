"""Hand-ins to the tiny course as a platform gets them, and what fits a specification."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
NUMBER = (int, float)
WRONG = ("return x * factor", "return x + factor")


def right(solution: str) -> dict[str, str]:
    return {"scale.py": solution}


def cases(solution: str) -> dict[str, tuple[dict[str, str], float]]:
    """Submissions to the tiny course, and their points."""
    return {
        "right": (right(solution), 8.0),
        "wrong": (right(solution.replace(*WRONG)), 4.0),
        "empty": ({}, 0.0),
        "broken": (right("def scale(:\n"), 0.0),
    }


SAYS = {  # in each case, somewhere
    "right": "",
    "wrong": "values differ",
    "empty": "no file was handed in",
    "broken": "your code raised SyntaxError",
}


def hand_in(folder: Path, files: Mapping[str, str]) -> None:
    """Put these files into a folder, and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.py"):
        path.unlink()
    for name, text in files.items():
        (folder / name).write_text(text)


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def started(command: list[str], cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a platform does: with these variables, and our Python."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def fits(data: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Check that every field is in a specification, with a type or value that it allows."""
    for name, value in data.items():
        wanted = fields[name]
        if isinstance(wanted, set):
            assert value in wanted, name
        else:
            assert isinstance(value, wanted), name
            assert not (wanted is NUMBER and isinstance(value, bool)), name
