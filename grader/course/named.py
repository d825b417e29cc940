"""Named mistakes: groups of wrong answers that a teacher has named, beside the catalogue.

`grader name` writes them. They decide the text about a mistake and its price, but no answer, so
nothing is graded again when they change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from grader.course.course import NAMED_FILE, Exercise
from grader.course.known_mistakes import Mistake
from grader.course.settings import Count, read_settings
from grader.errors import RequestError
from grader.files import write_whole

HEAD = "# Mistakes that were named with `grader name`; `grader validate` checks them.\n"
LISTS = ("fails", "secrets")
DELETE = "\x7f"  # a character that TOML escapes and JSON does not


class Named(Struct, frozen=True, forbid_unknown_fields=True):
    """A mistake that a teacher has named: its answers, its failed checks, and its text.

    `costs` is its price in points, by default a third of the exercise. `signature` is that of its
    answers to public calls, `secrets` are those at the secret seeds of the classes that named it,
    and `program` is one student's code with it, for comparison with other classes. It is charged
    once for the checks that it `fails`.
    """

    id: str
    signature: str
    says: str
    hint: str = ""
    costs: Count | None = None
    fails: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    program: str = ""

    @property
    def key(self) -> str:
        """A hash of the program."""
        return hashlib.sha256(self.program.encode("utf-8", "replace")).hexdigest()[:16]

    def as_mistake(self) -> Mistake:
        """Return it as a mistake of the exercise without edits."""
        return Mistake(name=self.id, says=self.says, hint=self.hint, costs=self.costs)


class NamedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `named.toml`: tables `[[named]]`."""

    named: tuple[Named, ...] = ()


def load_named(exercise: Exercise) -> tuple[Named, ...]:
    """Read the named mistakes of an exercise, if it has any; raises `CourseError`."""
    path = exercise.folder / NAMED_FILE
    if not exercise.folder.name or not path.is_file():
        return ()
    return read_settings(path, NamedFile).named


def save_named(exercise: Exercise, named: Iterable[Named]) -> Path:
    """Write the named mistakes of an exercise; raise `RequestError` if that is impossible."""
    path = exercise.folder / NAMED_FILE
    tables = (f"\n[[named]]\n{_table(each)}" for each in named)
    try:
        write_whole(path, HEAD + "".join(tables))
        path.chmod((exercise.folder / "exercise.toml").stat().st_mode & 0o666)
    except OSError as error:
        remedy = "ask somebody who may write to the course's folder to run this command"
        raise RequestError(f"cannot write {path}: {error.strerror}", remedy) from None
    return path


def _table(named: Named) -> str:
    lines = [
        f"id = {_quoted(named.id)}",
        f"signature = {_quoted(named.signature)}",
        f"says = {_quoted(named.says)}",
        f"hint = {_quoted(named.hint)}",
    ]
    if named.costs is not None:
        lines.append(f"costs = {named.costs}")
    lines += [f"{key} = [{', '.join(map(_quoted, getattr(named, key)))}]" for key in LISTS]
    lines.append(f"program = {_quoted(named.program)}")
    return "".join(f"{line}\n" for line in lines)


def _quoted(text: str) -> str:
    """Return a text as a string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace(DELETE, "\\u007f")
