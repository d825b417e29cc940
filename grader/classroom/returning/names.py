"""The names by which a platform recognises the owner of a feedback file.

Moodle reads `{name}_{participant}_{plugin}` in the name of a folder or file. Canvas reads the
numbers of the user and of the attachment in `{name}_{user}_{attachment}_{file}`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.report import UNSEEN
from grader.submissions.layouts.canvas import ANONYMOUS, NAMED
from grader.submissions.layouts.moodle import MARKER

PAGE = "feedback.html"
_PARTICIPANT = re.compile(r".*_[0-9]+", re.DOTALL)
# Characters that no name of a download holds, and those that zips or other systems misread.
_STRANGE = re.compile(r"[/\\:\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff" + UNSEEN + "]")


def moodle_name(student: str, names: Sequence[str]) -> str | None:
    """Return the name of a student's page in Moodle's zip; None if Moodle would not recognise it.

    `names` are those of the student's folder or files in the download. A student without files has
    none there; then only the participant's number identifies the page.
    """
    if not names:
        folder = f"Participant_{student}{MARKER}file_"  # Moodle reads the number, and no more
        return f"{folder}/{PAGE}" if student.isascii() and student.isdigit() else None
    owner, marker, content = _plain(names[0]).rpartition(MARKER)
    if not _PARTICIPANT.fullmatch(owner):
        return None
    kind, _, file = content.partition("_")
    return f"{owner}{marker}{kind}_{PAGE}" if file else f"{owner}{marker}{content}/{PAGE}"


def canvas_name(names: Sequence[str]) -> str | None:
    """Return the name of a student's page for Canvas; None if no file of the download has one.

    The page replaces the newest attachment. Its own name is not the student's: Canvas ignores a
    file whose last part begins with `link`.
    """
    found = (ANONYMOUS.fullmatch(name) or NAMED.fullmatch(name) for name in names)
    files = [match for match in found if match and match["file"]]
    if not files:
        return None
    newest = max(files, key=lambda match: int(match["attachment"][:40]))
    return f"{_plain(newest.string[: newest.start('file')])}{PAGE}"


def _plain(name: str) -> str:
    return _STRANGE.sub("-", name)
