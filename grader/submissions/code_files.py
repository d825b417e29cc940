"""Reading one Python file or notebook of a student as text, whatever its encoding."""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.course.course import Course
from grader.course.stubs import is_untouched, only_code, untouched_text
from grader.sandbox.cells import CELL, NOTEBOOK
from grader.sandbox.syntax import top_level_names
from grader.submissions.notebook import UnreadableNotebook, names_in_broken_cells, read_notebook
from grader.submissions.notes import quoted
from grader.submissions.opening import OwnFolder, code_suffix
from grader.submissions.reader.sharing import require_own_reader
from grader.trees import NotOpened, read_file

MAX_BYTES = 256 * 1024  # no solution to an exercise is longer
MAX_NOTEBOOK_BYTES = 32 * 1024 * 1024  # a notebook also holds outputs and pictures
DECLARED = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]{1,60})", re.ASCII)  # as in PEP 263
BLANK = re.compile(rb"[ \t\f]*(?:#|\r?$)")
MAX_PARSED = 2 * 1024 * 1024  # characters of a submission that are searched for definitions
MAX_COMPARED = 32 * 1024  # characters of a text whose code is compared with another's
WORK, UNREADABLE, STUB = range(3)  # the states of a file for an exercise, best first
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LFS = b"version https://git-lfs.github.com/spec/v1\n"  # how a pointer of Git LFS begins
NOT_FETCHED = "is a pointer of Git LFS, not the file itself; run `git lfs pull` in the clone"
SAVE = "save it as UTF-8 in your editor"


@dataclass(frozen=True)
class CodeFile:
    """A file's text, or why it cannot be used, and a digest of its kind and bytes.

    `remarks` are notes on its cells, without its name.
    """

    text: str = ""
    remarks: tuple[str, ...] = ()
    problem: str = ""
    digest: str = ""


class UnknownEncoding(Exception):
    """The bytes are not text in their declared encoding; the message continues a file's name."""


@dataclass
class CodeFiles:
    """The code files of one submission, each of which is read once."""

    own: OwnFolder
    course: Course
    _read: dict[Path, CodeFile] = field(default_factory=dict)
    _states: dict[tuple[Path, str], int] = field(default_factory=dict)
    _defined: dict[Path, dict[str, bool]] = field(default_factory=dict)
    _parsed: int = 0

    def read(self, file: Path) -> CodeFile:
        """Return the text of a file, or why it cannot be used."""
        if (code := self._read.get(file)) is None:
            code = self._read[file] = read_code(file, self.own.within, self.course)
        return code

    def state(self, file: Path, name: str) -> int:
        """Return whether a file has work for an exercise in it, cannot be read, or is a stub."""
        key = file, name
        state = self._states.get(key)
        if state is None:
            code, stub = self.read(file), untouched_text(self.course[name])
            is_stub = self._is_stub(file, name, stub)
            state = UNREADABLE if code.problem else STUB if is_stub else WORK
            self._states[key] = state
        return state

    def _is_stub(self, file: Path, name: str, stub: str) -> bool:
        """Return whether no code was written for an exercise.

        Of a notebook, which may hold several exercises, the cells count that define this one.
        """
        text = self.read(file).text
        if code_suffix(file.name) != NOTEBOOK:
            return is_untouched(text, stub)
        if self._names_in_broken_cells(file):
            return False
        names = "|".join(map(re.escape, self.course[name].implements))
        defines = re.compile(rf"^(?:(?:def|class)\s+(?:{names})\b|(?:{names})\s*=)", re.MULTILINE)
        cells = [cell for cell in text.split(CELL) if defines.search(cell)]
        return is_untouched("\n".join(f"# {cell}" for cell in cells) if cells else text, stub)

    def same_as(self, file: Path) -> str:
        """Return a text that is the same for files with the same code; if unreadable, the path."""
        code = self.read(file)
        if code.problem:
            return f"{file}"
        return code.text if len(code.text) > MAX_COMPARED else only_code(code.text)

    def defined_in(self, file: Path) -> dict[str, bool]:
        """Return the exercises for which a file defines something at its top level.

        The value is False if only cells of a notebook that do not parse define it. After a limit
        of text, no more is searched.
        """
        text = self.read(file).text
        if file in self._defined:
            return self._defined[file]
        if not self.may_define(file, self.course.names):
            return {}
        require_own_reader()
        self._parsed += len(text)
        if self._parsed > MAX_PARSED:
            return {}
        broken, whole = self._names_in_broken_cells(file), top_level_names(text)
        self._defined[file] = {
            each.name: bool(whole & {*each.implements})
            for each in self.course.exercises
            if (whole | broken) & {*each.implements}
        }
        return self._defined[file]

    def _names_in_broken_cells(self, file: Path) -> set[str]:
        is_notebook = code_suffix(file.name) == NOTEBOOK
        return names_in_broken_cells(self.read(file).text) if is_notebook else set()

    def may_define(self, file: Path, names: Sequence[str]) -> bool:
        """Return whether a file holds the words that a definition of these names needs."""
        defined = "|".join(
            re.escape(each) for name in names for each in self.course[name].implements
        )
        pattern = rf"\b(?:def|class)\s+(?:{defined})\b|\b(?:{defined})\s*="
        return re.search(pattern, self.read(file).text) is not None


def read_code(file: Path, within: Path, course: Course) -> CodeFile:
    """Return the text of a file in the folder `within`, or why it cannot be used."""
    suffix = code_suffix(file.name)
    most = MAX_NOTEBOOK_BYTES if suffix == NOTEBOOK else MAX_BYTES
    try:
        data = read_file(file, within, most)
        digest = digest_of(suffix, data)
        if data.startswith(LFS):
            raise NotOpened(NOT_FETCHED)
        if suffix != NOTEBOOK:
            return CodeFile(decoded(data), digest=digest)
        notebook = read_notebook(data, course.exercises)
        return CodeFile(notebook.code, notebook.remarks, digest=digest)
    except (NotOpened, UnknownEncoding) as error:
        reason = str(error)
    except UnreadableNotebook as error:
        reason = f"{error}; save it again in Jupyter"
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    return CodeFile(problem=f"{quoted(file.name)} {reason}")


def decoded(data: bytes) -> str:
    """Return the text of a source in UTF-8, in UTF-16 with its mark, or in its declared encoding.

    Valid UTF-8 is read as UTF-8, whatever it declares. Raises `UnknownEncoding`.
    """
    try:
        return data.decode("utf-16" if data.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        failed = error
    require_own_reader()  # the student decides which codec is looked up
    name = "" if failed.encoding.startswith("utf-16") else _declared_encoding(data)
    try:
        if name:
            text = data.decode(name)
            text.encode()  # some codecs make characters that UTF-8 cannot encode
            return text
    except UnicodeDecodeError as error:
        failed = error
    except (LookupError, ValueError) as error:  # such as `hex`, which turns bytes into bytes
        raise UnknownEncoding(f"cannot be read as {_title(name)}: {error}; {SAVE}") from None
    line = data.count(b"\n", 0, failed.start) + 1
    where = f"byte 0x{data[failed.start]:02x} in line {line}"
    raise UnknownEncoding(f"is not {_title(failed.encoding)}: {where}; {SAVE}")


def _declared_encoding(data: bytes) -> str:
    """Return the encoding that one of the first two lines declares; empty if none does."""
    for line in data.split(b"\n", 2)[:2]:
        if found := DECLARED.match(line):
            return found[1].decode("ascii")
        if not BLANK.match(line):
            return ""
    return ""


def _title(name: str) -> str:
    return "UTF-8" if name in ("utf-8", "utf8", "utf-8-sig") else name.upper()


def digest_of(suffix: str, data: bytes) -> str:
    """Return a digest of a file's kind and bytes: a file with a notebook's code is another file."""
    kind = b"notebook" if suffix == NOTEBOOK else b"python"
    return hashlib.sha256(kind + b"\0" + data).hexdigest()
