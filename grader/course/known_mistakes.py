"""Mistakes that students often make, as text edits of the reference solution."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from grader.course.course import MISTAKES_FILE, Exercise
from grader.course.settings import convert, read_data
from grader.errors import CourseError, did_you_mean

NUMBER = "{number}"  # the placeholder, in edits and in `says`, for a number that varies
MAX_EDITS = 4  # because every subset of them is graded, diagnosed and recorded
WRITTEN_SO = 'an edit is a list, such as ["dim=-1", "dim=0"]: a text, and its replacement'
PROGRAMS = {"edits", "also", "forms", "number"}  # the keys that make the programs with a mistake
OF_EDITS = re.compile(r"\w+\.(edits|also|forms)\b")

# A text that occurs in the solution once, and its replacement; each further text is a form.
Texts = Annotated[tuple[str, ...], Meta(min_length=2)]


class Edit(NamedTuple):
    """One edit of a solution's text: `replace`, which occurs once, becomes `by`."""

    replace: str
    by: str


class MistakeTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of a mistake: the symptom in the answers (`says`), a hint, and its edits.

    `edits` means any of them: one edit alone, or several, is the same mistake, such as a bias
    forgotten in one layer or in three. A list in `forms` means all at once: its edits are made
    together, in place of `edits`. A list in `also` is made with all of `edits`. `number` replaces
    `{number}`, unless the student's file has another number.

    `like` names mistakes with the same answers as this one. `costs` is its price in points, by
    default a third of the exercise.
    """

    says: str = ""
    hint: str = ""
    edits: tuple[Texts, ...] = ()
    also: tuple[tuple[Texts, ...], ...] = ()
    forms: tuple[tuple[Texts, ...], ...] = ()
    number: str = ""
    like: str = ""
    costs: int | None = None


class Mistake(MistakeTable, frozen=True, kw_only=True):
    """A mistake with its name."""

    name: str

    def apply(self, solution: str) -> str:
        """Return the solution with the edits of the first form."""
        return edited(solution, next(self.programs(), ())) or solution

    def saying(self, number: str = "") -> str:
        """Return the symptom in the answers, with the number in them."""
        return self.says.replace(NUMBER, number or self.number)

    def programs(self, number: str = "") -> Iterator[tuple[Edit, ...]]:
        """Yield the edits of every program with this mistake, first the one with all of `edits`."""
        main = tuple(texts[:2] for texts in self.edits)
        sizes = range(len(self.edits), 0, -1)
        some = itertools.chain.from_iterable(itertools.combinations(self.edits, n) for n in sizes)
        for edits in (*some, *((*main, *added) for added in self.also), *self.forms):
            for chosen in itertools.product(*(texts[1:] for texts in edits)):
                bys = (by.replace(NUMBER, number or self.number) for by in chosen)
                yield tuple(Edit(texts[0], by) for texts, by in zip(edits, bys, strict=True))


def edited(solution: str, edits: Sequence[Edit]) -> str | None:
    """Return the solution with `edits`; None if one of them does not fit exactly once."""
    for edit in edits:
        if solution.count(edit.replace) != 1:
            return None
        solution = solution.replace(edit.replace, edit.by)
    return solution


def load_mistakes(exercise: Exercise) -> tuple[Mistake, ...]:
    """Read the mistakes of an exercise; raises `CourseError` that names the file and the mistake.

    A table inherits missing keys from the table of the same name in the course's file: the
    sentences, and, if it makes no programs itself, the keys that make them.
    """
    path = exercise.folder / MISTAKES_FILE
    common = exercise.folder.parent / MISTAKES_FILE
    shared = _tables(read_data(common), common) if common.is_file() else {}
    data = read_data(path)
    price = {"costs": convert(data.pop("costs"), int, f"{path}: costs")} if "costs" in data else {}
    found = []
    for name, table in _tables(data, path).items():
        left = set() if PROGRAMS & table.keys() else PROGRAMS
        taken = {k: v for k, v in shared.get(name, {}).items() if k in left or k not in PROGRAMS}
        mistake = {"name": name, **price, **taken, **table}
        if missing := [key for key in ("says", "hint") if key not in mistake]:
            says = f"{path}: {name}: missing key `{missing[0]}`; write it here"
            near = did_you_mean(name, shared.keys() - {name})
            raise CourseError(f"{says}, or in a table `{name}` of {common}{near}")
        if len(table.get("edits", ())) > MAX_EDITS:
            says = f"{path}: {name}: {len(table['edits'])} edits; at most {MAX_EDITS} are allowed"
            raise CourseError(f"{says}; make two mistakes of it")
        found.append(convert(mistake, Mistake, f"{path}: {name}"))
    return tuple(found)


def _tables(data: dict[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of a file of mistakes by name; raises `CourseError` for a wrong one."""
    try:
        convert(data, dict[str, MistakeTable], str(path))
    except CourseError as error:
        is_edit = OF_EDITS.match(error.message.removeprefix(f"{path}: "))
        raise CourseError(f"{error.message}; {WRITTEN_SO}" if is_edit else error.message) from None
    return data
