"""Random trees of folders, reproducible from a seed, and the promises about a class in one.

Any tree is read as a class or refused, and nobody gets what is not their own.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from fuzzing import Fuzzer

from grader.course.course import Course, load_course
from grader.errors import RequestError
from grader.submissions.layouts import Attempt, FoundAttempts, find_attempts
from grader.submissions.layouts.attempt import RESERVED
from grader.submissions.layouts.collection import read_attempt
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import ReadingImpossible
from grader.submissions.reader.template import ReaderTemplate
from grader.submissions.reader_process import template as reader_process
from grader.submissions.submission import accepted

TINY = Path(__file__).parent / "tiny"
SECRET = "'nobody may read this'"
OWN = re.compile(r"'own [0-9]+'")
MARKER = "_assignsubmission_file"
TOP_NAMES = [
    *("s001", "s002.zip", "s003.py", "s004.ipynb", ".s005", "scale", "scale.py", "index", "..."),
    *("submission_metadata.yml", "submission_7", "submission_8.py", "s001.attempt-2", "=1+1"),
    *(f"One_11{MARKER}_", f"x_11{MARKER}_y_12{MARKER}_", f"Two_12{MARKER}_scale.py", MARKER),
    *("one_501_9001_scale.py", "two_LATE_502_9002_scale-1.py", "anon_aB3xZ_9003_hw.zip"),
    *("three_503_text.html", "__MACOSX", "class-submissions", "n" * 250, "s\n\x1b[2J", "s\udcff"),
]
INNER_NAMES = [
    *("scale.py", "scale", "solution.py", "scale.ipynb", "b.zip", "B.ZIP", "other.py", "notes.txt"),
    *(".git", "HEAD", "objects", "packed-refs", "hw", "x" * 255, "-", "\udcff.py", "a\nb.py"),
]
LAYOUTS = [None, None, "plain", "canvas", "moodle", "gradescope", "clones"]
METADATA = "submission_7: {':submitters': [{':sid': '../x'}]}\nscale: 1\n"


def own_text(name: str) -> str:
    """Return the text that only the files of one entry of the class hold."""
    return f"'own {TOP_NAMES.index(name)}'"


class Grower:
    """Grows a random tree beside a secret; each file says in which entry of the class it is."""

    def __init__(self, rng: Random, root: Path) -> None:
        self._rng, self.root, self._left = rng, root, 60
        self.secret = root / "secret"
        (self.secret / "scale").mkdir(parents=True)
        for name in ("scale.py", "scale/solution.py", "scale.ipynb"):
            (self.secret / name).write_text(f"factor = {SECRET}\n")
        with zipfile.ZipFile(self.secret / "b.zip", "w") as archive:
            archive.writestr("scale.py", f"factor = {SECRET}\n")
        self.kinds: list[Callable[[Path, str], None]] = [
            *[self._file] * 4,
            *[self._folder] * 4,
            *[self._zip] * 2,
            *[self._link] * 2,
            *(self._hard_link, self._special, self._hole, self._deep, self._junk),
        ]

    def grow(self) -> Path:
        """Return the folder of a class; an entry's own files hold what `own_text` says."""
        top = self.root / "class"
        top.mkdir()
        # Mostly plain names, or most classes would be refused as a whole.
        names = ["s001", "s002.zip", "s003.py"][: self._rng.randint(0, 3)]
        names += self._rng.sample(TOP_NAMES, self._rng.randint(0, 8))
        for name in dict.fromkeys(names):
            self._plant(top / name, own_text(name))
        return top

    def _plant(self, at: Path, own: str) -> None:
        self._left -= 1
        if self._left > 0:
            with contextlib.suppress(FileExistsError):
                self._rng.choice(self.kinds)(at, own)

    def _file(self, at: Path, own: str) -> None:
        at.write_text(METADATA if at.suffix == ".yml" else f"def scale(x): return {own}\n")

    def _folder(self, at: Path, own: str) -> None:
        at.mkdir()
        likely = self._rng.sample(INNER_NAMES[:5], self._rng.randint(0, 2))
        for name in dict.fromkeys(likely + self._rng.sample(INNER_NAMES, 3)):
            self._plant(at / name, own)

    def _zip(self, at: Path, own: str) -> None:
        with zipfile.ZipFile(at, "w") as archive:
            for name in self._rng.sample(INNER_NAMES, self._rng.randint(0, 4)):
                with contextlib.suppress(UnicodeEncodeError):
                    member = zipfile.ZipInfo(self._rng.choice(("", "hw/", "../", "/")) + name)
                    kind = self._rng.choice((0, 0, 0, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFREG))
                    member.external_attr = (kind | 0o644) << 16
                    archive.writestr(member, f"factor = {own}\n")
        if self._rng.random() < 0.2:
            data = bytearray(at.read_bytes())
            data[self._rng.randrange(len(data))] ^= 1 << self._rng.randrange(8)
            at.write_bytes(data)

    def _link(self, at: Path, own: str) -> None:
        alike = self._alike(at)
        at.symlink_to(self._rng.choice((alike, alike, self.secret, at, at.parent, "/dev/zero")))

    def _hard_link(self, at: Path, own: str) -> None:
        alike = self._alike(at)
        os.link(alike if alike.is_file() else self.secret / "scale.py", at)

    def _alike(self, at: Path) -> Path:
        """Return the secret with this name or, if there is none, with this suffix."""
        named = self.secret / at.name.lower()
        is_there = len(at.name) < 20 and named.exists()
        return named if is_there else self.secret / {".zip": "b.zip"}.get(at.suffix, "scale.py")

    def _special(self, at: Path, own: str) -> None:
        os.mknod(at, self._rng.choice((stat.S_IFIFO, stat.S_IFSOCK)) | 0o600)

    def _hole(self, at: Path, own: str) -> None:
        at.touch()
        os.truncate(at, 2**33)

    def _deep(self, at: Path, own: str) -> None:
        """Make folders so deep that no path reaches the last."""
        at.mkdir()
        descriptor = os.open(at, os.O_RDONLY)
        for name in [self._rng.choice(("hw", "y" * 200))] * self._rng.choice((3, 15, 30)):
            os.mkdir(name, dir_fd=descriptor)
            inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        os.close(os.open("scale.py", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
        os.close(descriptor)

    def _junk(self, at: Path, own: str) -> None:
        at.write_bytes(self._rng.randbytes(self._rng.randint(0, 99)))


@functools.cache
def _tiny_course() -> Course:
    return load_course(TINY)


def is_class(root: Path, case: bytes) -> bool:
    """Grow the tree of a case and read it as `grader batch` does; return whether it is a class.

    Raises `AssertionError` if one of the promises about a class does not hold.
    """
    course, rng, home = _tiny_course(), Random(case), root / "case"
    home.mkdir()
    try:
        folder = Grower(rng, home).grow()
        try:
            found = find_attempts(folder, course, rng.choice(LAYOUTS), folder / "out")
        except RequestError as refused:
            message = refused.message
        else:
            _check_attempts(found, course)
            return True
    finally:
        shutil.rmtree(home)
    assert len(message) < 2000
    return False


def is_class_read_here(root: Path, case: bytes) -> bool:
    """Do the same without a process for each submission: it is most of what they cost."""
    with mock.patch.object(ReaderTemplate, "ask", _read_here):
        return is_class(root, case)


def _check_attempts(found: FoundAttempts, course: Course) -> None:
    names = {attempt.student for attempt in found.attempts}
    assert len({(one.student, one.number) for one in found.attempts}) == len(found.attempts)
    assert all(
        name.isprintable() and "/" not in name and not RESERVED.fullmatch(name) for name in names
    )
    assert all(one.what.isprintable() for one in found.left_out)
    assert len(found.left_out) <= 40
    for attempt in found.attempts:
        _check_attempt(attempt, course, {own_text(part.path.name) for part in attempt.parts})


def _check_attempt(attempt: Attempt, course: Course, own: set[str]) -> None:
    submission = accepted(read_attempt(attempt, course), course)
    said = io.StringIO()
    print(submission.files, submission.problems, submission.notes, file=said)
    assert SECRET not in said.getvalue()
    for text in submission.files.values():
        assert set(OWN.findall(text)) <= own
    assert len(submission.notes) <= 70
    assert all(len(problem) < 10_000 for problem in submission.problems.values())
    assert not {*submission.files} & {*submission.problems}


def _read_here(
    template: ReaderTemplate, job: messages.Job, expected: type, readable: Iterable[Path], **_: Any
) -> Any:
    """Do a reader's job in this process, in place of `ReaderTemplate.ask`."""
    answer = reader_process.answer(messages.decode_job(messages.encode(job)))
    if isinstance(answer, messages.ReadingRefused):
        raise ReadingImpossible(answer)
    assert isinstance(answer, expected)
    return messages.decode_answer(messages.encode(answer))


def _a_tree(rng: Random) -> bytes:
    return b"a tree of seed %d" % rng.getrandbits(64)


TREES = Fuzzer(_a_tree, is_class_read_here)
CONFINED_TREES = Fuzzer(_a_tree, is_class)
