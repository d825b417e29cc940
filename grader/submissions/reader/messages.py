"""The messages to and from a reader: a closed list of types, with a bound on everything in them.

A reader parses strangers' files, so its answer is not trusted: an answer that is too long is
refused before it is read, and it is decoded into these types only.
"""

from __future__ import annotations

import socket
from typing import Annotated

import msgspec

from grader.processes import channel
from grader.sandbox.confinement.limits import Confinement

MAX_TEXTS = 2 << 20  # bytes of all texts of one submission, in UTF-8
MAX_ANSWER = 2 * MAX_TEXTS
MAX_WORDS = 4000  # characters of a note or a reason
MAX_PATH = 20_000  # characters; every byte of a file name may be written as four
MAX_NOTES = 1000
MAX_PARTS = 10_000  # parts of a zip of which something was left out
MAX_SUBMISSIONS, MAX_SUBMITTERS = 100_000, 1000  # in the metadata of a class, and of one

Name = Annotated[str, msgspec.Meta(max_length=200)]
Words = Annotated[str, msgspec.Meta(max_length=MAX_WORDS)]
FilePath = Annotated[str, msgspec.Meta(max_length=MAX_PATH)]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Notes = Annotated[tuple[Words, ...], msgspec.Meta(max_length=MAX_NOTES)]

# --- to the template process ----------------------------------------------------------------------


class StartReader(msgspec.Struct, tag="start", frozen=True):
    """Fork a reader, which answers with a `ReaderStarted` on the socket sent with this order."""

    job: str  # the type of its future job


class StopReader(msgspec.Struct, tag="stop", frozen=True):
    """End reader `pid`. The answer is a `ReaderStopped`."""

    pid: int


class ReaderStopped(msgspec.Struct, frozen=True):
    """How a reader ended: its exit status, negative for a signal, and the CPU time it used."""

    status: int
    cpu_seconds: float


# --- to a reader: first its `Confinement`, then its job -------------------------------------------


class ExerciseNames(msgspec.Struct, frozen=True):
    """A reader's data about an exercise: its name, the names to implement, and its stub."""

    name: str
    implements: tuple[str, ...]
    stub: str = ""


class PartToRead(msgspec.Struct, frozen=True):
    """A file or folder, and the name that its student gave it, as bytes of the file system."""

    path: bytes
    name: bytes


class ReadAttempt(msgspec.Struct, tag="attempt", frozen=True):
    """Read one attempt of a class. The answer is a `FilesRead`."""

    exercises: tuple[ExerciseNames, ...]
    student: bytes
    parts: tuple[PartToRead, ...]
    notes: tuple[str, ...]


class ReadPlainly(msgspec.Struct, tag="plainly", frozen=True):
    """Read one attempt of the class in `root` without a parser. The answer is a `PlainlyRead`.

    The same reader may then get the next such job, with the next number, and no other job.
    """

    number: int
    root: bytes
    attempt: ReadAttempt


class ReadPaths(msgspec.Struct, tag="paths", frozen=True):
    """Read the submission in these paths, relative to a folder. The answer is a `FilesRead`."""

    exercises: tuple[ExerciseNames, ...]
    folder: bytes
    paths: tuple[bytes, ...]


class UnpackClass(msgspec.Struct, tag="unpack", frozen=True):
    """Unpack the zip of a class into a folder. The answer is a `ClassUnpacked`."""

    archive: bytes
    into: bytes


class ParseMetadata(msgspec.Struct, tag="metadata", frozen=True):
    """Read a file that says who handed in which submission. The answer is a `MetadataParsed`."""

    path: bytes


Job = ReadAttempt | ReadPaths | UnpackClass | ParseMetadata

# --- from a reader: the first two before it has read its job --------------------------------------


class ReaderStarted(msgspec.Struct, frozen=True):
    """The reader's pid or, if this machine cannot start a process, the reason."""

    pid: int = 0
    fault: str = ""


class ReaderConfined(msgspec.Struct, frozen=True):
    """The reader is confined or, if this machine cannot do that, the reason.

    `cpu_seconds` is the limit that it got: the machine's own, if that is lower than ours.
    """

    fault: str = ""
    cpu_seconds: int = 0


class FilesRead(msgspec.Struct, tag="files", frozen=True):
    """The files by exercise name; `digests` are of the files as they were handed in.

    The texts are listed by these digests, because one notebook may hold many exercises.
    """

    name: Words
    texts: dict[Digest, str]
    digests: dict[Name, Digest]
    paths: dict[Name, FilePath]
    problems: dict[Name, Words]
    notes: Notes


class PlainlyRead(msgspec.Struct, frozen=True):
    """The answer to the job of this number; without files, it needs a reader of its own."""

    number: int
    files: FilesRead | None = None


class PartNotes(msgspec.Struct, frozen=True):
    """The notes on files left out of one student's part of a zip, by its path in the zip."""

    path: FilePath
    notes: Notes


class ClassUnpacked(msgspec.Struct, tag="unpacked", frozen=True):
    """The zip is unpacked; the notes on all members that were left out, and on each part's."""

    notes: Notes
    parts: Annotated[tuple[PartNotes, ...], msgspec.Meta(max_length=MAX_PARTS)] = ()


class PersonParsed(msgspec.Struct, frozen=True):
    """A person in the metadata of a class."""

    name: Words
    email: Words
    number: Words


class SubmissionParsed(msgspec.Struct, frozen=True):
    """One submission in the metadata of a class; `created` is a time in ISO format, or empty."""

    file: Words
    submitters: Annotated[tuple[PersonParsed, ...], msgspec.Meta(max_length=MAX_SUBMITTERS)]
    created: Words


class MetadataParsed(msgspec.Struct, tag="metadata", frozen=True):
    """The submissions that the metadata lists."""

    submissions: Annotated[tuple[SubmissionParsed, ...], msgspec.Meta(max_length=MAX_SUBMISSIONS)]


class ReadingRefused(msgspec.Struct, tag="refused", frozen=True):
    """The job cannot be done; `error` is the system's number if the machine seems to be at fault.

    `remedy` says what to do.
    """

    message: Words
    remedy: Words = ""
    error: int = 0


Result = FilesRead | ClassUnpacked | MetadataParsed
Answer = Result | ReadingRefused

encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(StartReader | StopReader).decode
decode_confinement = msgspec.msgpack.Decoder(Confinement).decode
decode_started = msgspec.msgpack.Decoder(ReaderStarted).decode
decode_stopped = msgspec.msgpack.Decoder(ReaderStopped).decode
decode_confined = msgspec.msgpack.Decoder(ReaderConfined).decode
decode_job = msgspec.msgpack.Decoder(Job | ReadPlainly).decode
decode_plain_job = msgspec.msgpack.Decoder(ReadPlainly).decode
decode_plainly_read = msgspec.msgpack.Decoder(PlainlyRead).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode


def send(connection: socket.socket, message: msgspec.Struct) -> None:
    """Send one message."""
    channel.send(connection, encode(message))


def cut(text: str, most: int = MAX_WORDS) -> str:
    """Return a text that fits into an answer."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
