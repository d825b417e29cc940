"""The page on security gives the limits of today."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.classroom import csv_files
from grader.commands import bringing, memory, on_platform, published
from grader.course import settings
from grader.sandbox import wire
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.worker import quota
from grader.submissions import archives, code_files, notebook, opening
from grader.submissions.layouts import collection, commits, gradescope_metadata, recognise
from grader.submissions.reader import exchange, messages

ROOT = Path(__file__).parent.parent
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def security_row(start: str) -> str:
    """Return the row of the tables of limits in docs/security.md that starts so."""
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {start}")]
    return row


READER, CLASS_ZIP, METADATA = exchange.ORDINARY, archives.CLASS, gradescope_metadata.LIMITS
FIGURES: dict[str, tuple[tuple[float, str], ...]] = {
    "files of a submission": (
        (READER.seconds, "{:g} s,"),
        (READER.cpu_seconds, "{:g} s of CPU"),
        (READER.memory / MIB, "{:g} MiB of memory"),
        (code_files.MAX_BYTES / KIB, "a file of {:g} KiB"),
        (messages.MAX_TEXTS / MIB, "all texts {:g} MiB"),
        (opening.MAX_ENTRIES, "{:,} files and folders"),
    ),
    "archives in a submission": (
        (collection.MAX_ZIPS, "{:g} zips or tars"),
        (archives.STUDENT.archive / MIB, "each {:g} MiB"),
        (archives.STUDENT.members, "{:,} members"),
        (archives.STUDENT.member / MIB, "of {:g} MiB,"),
        (archives.STUDENT.notebook / MIB, "notebooks of {:g} MiB"),
        (archives.STUDENT.unpacked / MIB, "{:g} MiB unpacked"),
        (archives.MAX_RATIO, "at most {:g}"),
        (archives.MAX_PADDING, "{:g} times as much"),
    ),
    "notebooks": (
        (code_files.MAX_NOTEBOOK_BYTES / MIB, "{:g} MiB,"),
        (notebook.LARGE / MIB, "above {:g} MiB"),
        (notebook.MAX_CELLS, "{:,} cells"),
        (notebook.MAX_CODE / KIB, "{:g} KiB of code"),
    ),
    "the archive of a class": (
        (CLASS_ZIP.archive / GIB, "{:g} GiB,"),
        (CLASS_ZIP.member / MIB, "{:g} MiB for a member"),
        (CLASS_ZIP.part_members, "{:,} members"),
        (CLASS_ZIP.part_unpacked / MIB, "{:g} MiB for each student"),
        (recognise.CLASS_SECONDS, "{:g} s,"),
        (recognise.SLOWEST / MIB, "{:g} s more for each MiB"),
    ),
    "Gradescope's": (
        (gradescope_metadata.MAX_BYTES / MIB, "{:g} MiB,"),
        (METADATA.seconds, "{:g} s,"),
        (METADATA.memory / GIB, "{:g} GiB of memory"),
        (gradescope_metadata.MAX_DEPTH, "{:g} levels"),
        (messages.MAX_SUBMISSIONS, "{:,} submissions"),
    ),
    "a clone": (
        (commits.CPU_SECONDS, "{:g} s of CPU"),
        (commits.TIMEOUT, "{:g} s,"),
        (commits.MAX_COMMIT / KIB, "a commit of {:g} KiB"),
        (commits.MAX_TREE / MIB, "a list of files of {:g} MiB"),
        (commits.MAX_BLOBS / MIB, "files of {:g} MiB"),
        (commits.MAX_TEXT / MIB, "refs of {:g} MiB"),
    ),
    "`submission_metadata.json`": ((on_platform.MAX_METADATA_BYTES / MIB, "| {:g} MiB |"),),
    "rosters": (
        (csv_files.MAX_BYTES / MIB, "{:g} MiB for a roster"),
        (published.MAX_GRADEBOOK_BYTES / MIB, "{:g} MiB for a gradebook"),
    ),
    "folders that others may change": (
        (bringing.MAX_FILE / MIB, "a file of {:g} MiB"),
        (bringing.MAX_LIST / MIB, "handed out {:g} MiB"),
        (memory.MAX_BYTES / MIB, "last results {:g} MiB"),
        (settings.MAX_BYTES / MIB, "`course.json` {:g} MiB"),
    ),
    "answers of a worker": (
        (wire.MAX_FRAME / MIB, "{:g} MiB"),
        (wire.MAX_ITEMS, "{:,} items"),
        (wire.MAX_DEPTH, "{:g} levels"),
        (wire.MAX_TEXT, "{:,} characters"),
    ),
    "**resource limits**": (
        (Confinement().memory_bytes / GIB, "{:g} GiB above"),
        (Confinement().file_bytes / MIB, "file size ({:g} MiB)"),
        (Confinement().open_files, "{:g} open files"),
        (1 / quota.CHECK_SECONDS, "{:g} times a second"),
        (quota.MAX_FOLDER_BYTES / MIB, "more than {:g} MiB"),
        (quota.MAX_FILES, "{:g} files in"),
        (quota.MAX_WRITTEN_BYTES / MIB, "about {:g} MiB"),
        (quota.MAX_THREADS, "{:g} threads"),
    ),
}


@pytest.mark.parametrize("start", FIGURES)
def test_the_page_on_security_gives_todays_limits(start: str) -> None:
    row = security_row(start)
    figures = [form.format(value) for value, form in FIGURES[start]]
    assert [figure for figure in figures if figure not in row] == []
