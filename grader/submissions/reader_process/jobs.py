"""The jobs of readers: reading a submission, unpacking a class, parsing its metadata.

Strangers' files are parsed here, in a separate process that is confined before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from grader.course.course import Course, Exercise
from grader.errors import RequestError
from grader.packed import UnreadableArchive
from grader.sandbox.confinement.layers import confine
from grader.sandbox.confinement.limits import Confinement
from grader.submissions.archives import CLASS, unpack
from grader.submissions.notes import printable_text, shortened
from grader.submissions.reader import messages
from grader.submissions.submission import read_submission

if sys.platform != "win32":
    import resource


def confine_reader(confinement: Confinement, private: Path, parent: int) -> messages.ReaderConfined:
    """Confine this process; return the reader's message about that."""
    try:
        confine(confinement, private, parent)
    except Exception as error:
        return messages.ReaderConfined(_text(f"{type(error).__name__}: {error}")[:4000])
    return messages.ReaderConfined(cpu_seconds=_limit("CPU"))


def _limit(name: str) -> int:
    """Return the limit of a resource; the largest number if the system has none."""
    if sys.platform == "win32":
        return sys.maxsize
    limit = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def answer(job: messages.Job) -> messages.Answer:
    """Do one job; whatever cannot be done is refused with the reason."""
    try:
        match job:
            case messages.ReadAttempt():
                return _read_attempt(job)
            case messages.ReadPaths():
                return _read_paths(job)
            case messages.UnpackClass():
                return _unpack_class(job)
            case messages.ParseMetadata():
                return _parse_metadata(job)
    except MemoryError:
        most = _limit("AS") >> 20
        return messages.ReadingRefused(f"reading it takes more than {most} MiB of memory")


def _read_attempt(job: messages.ReadAttempt) -> messages.Answer:
    from grader.submissions.layouts.attempt import Attempt, AttemptPart  # noqa: PLC0415, see above
    from grader.submissions.layouts.collection import read_attempt  # noqa: PLC0415

    parts = (AttemptPart(path_of(part.path), os.fsdecode(part.name)) for part in job.parts)
    student = os.fsdecode(job.student)
    attempt = Attempt(student, tuple(parts), notes=job.notes)
    try:
        return _sendable(read_attempt(attempt, _course(job.exercises)))
    except OSError as error:
        message = f"cannot read what {printable_text(student)} handed in"
        return messages.ReadingRefused(message, error=error.errno or 0)


def _read_paths(job: messages.ReadPaths) -> messages.Answer:
    os.chdir(job.folder)
    paths = [path_of(path) for path in job.paths]
    try:
        return _sendable(read_submission(paths, _course(job.exercises)))
    except RequestError as error:
        return messages.ReadingRefused(messages.cut(_text(error.message)), _text(error.remedy))
    except OSError as error:
        where = printable_text(os.fsdecode(error.filename or paths[0]))
        message = f"cannot read {where}: {error.strerror}"
        return messages.ReadingRefused(message, error=error.errno or 0)


def _unpack_class(job: messages.UnpackClass) -> messages.Answer:
    notes: list[str] = []
    part_notes: dict[str, list[str]] = {}
    archive = path_of(job.archive)
    try:
        unpack(archive, path_of(job.into), notes, CLASS, archive, part_notes)
    except UnreadableArchive as error:
        return messages.ReadingRefused(messages.cut(_text(str(error))))
    parts = (
        messages.PartNotes(path, _notes(shortened(each)))
        for path, each in islice(part_notes.items(), messages.MAX_PARTS)
        if len(path) <= messages.MAX_PATH
    )
    return messages.ClassUnpacked(_notes(notes), tuple(parts))


def _parse_metadata(job: messages.ParseMetadata) -> messages.Answer:
    from grader.submissions.layouts import gradescope_metadata as metadata  # noqa: PLC0415

    try:
        found = metadata.parse(path_of(job.path))
    except metadata.UnreadableMetadata as error:
        return messages.ReadingRefused(messages.cut(_text(str(error))))
    return messages.MetadataParsed(
        tuple(
            messages.SubmissionParsed(
                messages.cut(_text(file)),
                tuple(
                    messages.PersonParsed(person.name, person.email, person.number)
                    for person in one.submitters[: messages.MAX_SUBMITTERS]
                ),
                one.created.isoformat() if one.created else "",
            )
            for file, one in list(found.items())[: messages.MAX_SUBMISSIONS]
        )
    )


def _sendable(read: messages.FilesRead) -> messages.FilesRead:
    """Return what was read with texts that can be sent, within the bounds of an answer."""
    return messages.FilesRead(
        messages.cut(_text(read.name)),
        read.texts,
        read.digests,
        {name: _text(path) for name, path in read.paths.items()},
        {name: messages.cut(_text(why)) for name, why in read.problems.items()},
        _notes(read.notes),
    )


def _notes(notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(messages.cut(_text(note)) for note in shortened(notes, messages.MAX_NOTES - 1))


def _text(text: str) -> str:
    """Return a text that can be sent: names of files may hold bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def path_of(path: bytes) -> Path:
    """Return a path that was sent as bytes of the file system."""
    return Path(os.fsdecode(path))


def _course(exercises: tuple[messages.ExerciseNames, ...]) -> Course:
    """Return the part of a course that reading needs."""
    listed = [
        Exercise(each.name, title="", order=0, points=1, implements=each.implements, stub=each.stub)
        for each in exercises
    ]
    return Course("", Path(), tuple(listed), "public")
