"""What students hand in, made up for tests, and what is read of it."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

from grader.course.course import Course
from grader.submissions.layouts import (
    Attempt,
    FoundAttempts,
    collect,
    find_attempts,
)
from grader.submissions.submission import Submission

SOFTMAX = "def masked_softmax(scores, lengths): return scores\n"
NORM = "class LayerNorm: pass\n"
STRANGE = "def unheard_of(): pass\n"


def zipped(path: Path, members: Mapping[str, str | bytes]) -> Path:
    """Write a zip of these files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def place(folder: Path, *names: str, text: str | None = None) -> Path:
    """Write these files below a folder; return the folder.

    Without a text, a file whose name has `layer_norm` in it holds that, and any other the softmax.
    """
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        own = NORM if "layer_norm" in name else SOFTMAX
        (folder / name).write_text(own if text is None else text)
    return folder


def notebook(*texts: str) -> str:
    """Return a notebook of these cells."""
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**cell, "id": f"c{n}", "source": text} for n, text in enumerate(texts, start=1)]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def by_student(found: FoundAttempts) -> dict[str, Attempt]:
    """Return the last attempt of each student."""
    return {attempt.student: attempt for attempt in found.attempts}


def read(folder: Path, course: Course, layout: str | None = None) -> dict[str, Submission]:
    """Return what is handed in in a folder, by student."""
    found = find_attempts(folder, course, layout)
    return {attempt.student: collect(attempt, course) for attempt in found.attempts}


def reason(submission: Submission, course: Course) -> str:
    """Return why nothing in a submission can be graded."""
    assert (submission.files, set(submission.problems)) == ({}, set(course.names))
    (why,) = set(submission.problems.values())
    return why


def plant(kind: str, at: Path, secret: Path) -> None:
    """Put something in place of a file that nobody may open there."""
    at.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(at)
    elif kind == "socket":
        os.mknod(at, stat.S_IFSOCK | 0o600)
    elif kind == "hard link":
        os.link(secret, at)
    elif kind == "link":
        at.symlink_to(secret)
    elif kind == "folder":
        at.mkdir()


REFUSED = {
    "pipe": "is not a regular file",
    "socket": "is not a regular file",
    "folder": "is not a regular file",
    "hard link": "is a hard link (make a copy)",
    "link": "is a link",
}
