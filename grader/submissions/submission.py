"""A submission: the text of its exercise files, and notes on files left out."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePath

from grader.course.course import Course
from grader.errors import RequestError
from grader.packed import UnreadableArchive
from grader.submissions.archives import ZIP_AGAIN, is_opened, unpacked, without_suffix
from grader.submissions.code_files import CodeFiles, digest_of
from grader.submissions.exercise_files import find_exercise_files
from grader.submissions.notes import as_reason, flags_first, printable_name, quoted, shortened
from grader.submissions.opening import OwnFolder, code_stem, code_suffix
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import NONSENSE, ReadingFailed, ReadingImpossible
from grader.submissions.reader.host import exercise_names, readers

PLAIN_FILES = "hand in the exercise files as plain .py files"
TOO_LONG = f"the exercise files are together longer than {messages.MAX_TEXTS >> 20} MiB"


@dataclass(frozen=True)
class Submission:
    """The text of each exercise file, by exercise name.

    `paths` holds the place of each file, `problems` why an exercise's file cannot be used.
    `identity` is the hash if the files themselves, which may be notebooks, are not at hand.
    """

    name: str
    files: Mapping[str, str]
    paths: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    identity: str = ""

    @cached_property
    def hash(self) -> str:
        """The identity of this submission: a hash over the name, kind and bytes of each file.

        It is the `identity` if there is one. Else the texts count as the bytes of the files.
        """
        digests = {
            name: digest_of(
                PurePath(self.paths.get(name, "")).suffix, text.encode("utf-8", "replace")
            )
            for name, text in ({} if self.identity else self.files).items()
        }
        return self.identity or identity_of(digests)


def identity_of(digests: Mapping[str, str]) -> str:
    """Return the hash of a submission from the digests of its files by exercise name."""
    lines = (f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:32]


def discover(paths: Sequence[Path], course: Course) -> Submission:
    """Let a reader read the submission in `paths`; see `read_submission`.

    Raises `RequestError` if no exercise is found, or one of them twice, or nothing can be read.
    """
    given = tuple(os.fsencode(path) for path in paths)
    job = messages.ReadPaths(exercise_names(course), os.fsencode(Path.cwd()), given)
    try:
        return accepted(readers().ask(job, messages.FilesRead, paths), course)
    except ReadingImpossible as error:
        raise RequestError(str(error), error.remedy) from None
    except ReadingFailed as error:
        where = ", ".join(map(str, paths))
        raise RequestError(f"cannot read {where}: {error}", PLAIN_FILES) from None


def accepted(read: messages.FilesRead, course: Course) -> Submission:
    """Return a reader's answer as a submission; raise `ReadingFailed` if it is invalid."""
    names = set(course.names)
    known = read.digests, read.paths, read.problems
    total = sum(len(text.encode("utf-8", "replace")) for text in read.texts.values())
    if (
        not names.issuperset(chain(*known))
        or read.texts.keys() != {*read.digests.values()}
        or not read.paths.keys() >= read.digests.keys()
        or read.digests.keys() & read.problems.keys()
        or total > messages.MAX_TEXTS
    ):
        raise ReadingFailed(NONSENSE)
    identity = identity_of(read.digests)
    files = {name: read.texts[digest] for name, digest in read.digests.items()}
    return Submission(read.name, files, read.paths, read.problems, read.notes, identity)


def read_submission(
    paths: Sequence[Path], course: Course, *, inside: bool = False
) -> messages.FilesRead:
    """Read the submission in `paths`: exercise files, or folders or zips that hold them.

    Only a reader calls this, because it parses a student's files. A single file with another name
    is used for every exercise for which it defines something. The submission's `paths` start with
    the given path or, with `inside`, below it. Raises `RequestError` if no exercise is found, or
    one of them twice.
    """
    texts: dict[str, str] = {}
    places: dict[str, str] = {}
    problems: dict[str, str] = {}
    digests: dict[str, str] = {}
    notes: list[str] = []
    room = messages.MAX_TEXTS
    for path in paths:
        with _opened(path, notes) as opened:
            code_files = CodeFiles(OwnFolder(opened), course)
            for name, file in find_exercise_files(opened, code_files, notes).items():
                below = PurePath(*file.parts[len(opened.parts) :])
                at = below if inside else path / below
                place = printable_name(str(at.with_name(code_stem(at.name) + code_suffix(at.name))))
                if name in places:
                    raise RequestError(
                        f"{name} is given twice: {places[name]} and {place}",
                        "grader check PATH   with one submission at a time",
                    )
                places[name] = place
                code = code_files.read(file)
                notes += [f"{quoted(place)}: {remark}" for remark in code.remarks]
                if code.digest not in texts:  # one file may hold several exercises
                    room -= len(code.text.encode())
                if code.problem or room < 0:
                    problems[name] = code.problem or TOO_LONG
                else:
                    texts[code.digest], digests[name] = code.text, code.digest
    notes = flags_first(notes)
    if not places:
        where = ", ".join(map(str, paths))
        raise RequestError(
            as_reason([f"no exercise file in {where}", *shortened(notes)]),
            f"a submission holds files such as {course.names[0]}.py",
        )
    name = _name_of(paths[0])
    return messages.FilesRead(name, texts, digests, places, problems, tuple(notes))


@contextlib.contextmanager
def _opened(path: Path, notes: list[str]) -> Iterator[Path]:
    if not is_opened(path.name) or not path.is_file():
        yield path
        return
    try:
        with unpacked(path, notes, within=path) as folder:
            yield folder
    except UnreadableArchive as error:
        raise RequestError(f"{path}: {error}", ZIP_AGAIN) from None


def _name_of(path: Path) -> str:
    path = path.absolute()
    if is_opened(path.name) and not path.is_dir():
        return printable_name(without_suffix(path.name))
    return printable_name(path.name if path.is_dir() else path.parent.name)
