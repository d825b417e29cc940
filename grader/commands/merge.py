"""A class graded in parts, each by a machine of its own, put together again."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from grader.errors import RequestError
from grader.classroom.ledger import FILE, Ledger, locked, settings_of

SHARED = ("seed", "request")  # settings that all parts have to have in common
_NAME = re.compile(r"shard-(\d+)-of-(\d+)")


@dataclass(frozen=True)
class Part:
    """One part's ledger: the `number`-th of `parts`."""

    number: int
    parts: int
    ledger: Path

    @property
    def name(self) -> str:
        """What its folder is called."""
        return name_of(self.number, self.parts)


def name_of(number: int, parts: int) -> str:
    """What the folder of a part is called."""
    return f"shard-{number}-of-{parts}"


def parts_of(folder: Path) -> list[Part]:
    """The parts in a folder, in order; `RequestError` if there are none, or one is missing."""
    found = [
        Part(int(match[1]), int(match[2]), path / FILE)
        for path in sorted(folder.glob("shard-*-of-*"))
        if (match := _NAME.fullmatch(path.name)) and (path / FILE).is_file()
    ]
    sizes = {part.parts for part in found}
    if not found:
        raise RequestError(
            f"{folder} holds no parts of a class",
            f"grader batch SUBMISSIONS --out {folder} --seed N --shard 1/2",
        )
    if len(sizes) > 1:
        raise RequestError(
            f"{folder} holds parts of several divisions: {', '.join(p.name for p in found)}",
            "remove those that are not meant",
        )
    (parts,) = sizes
    missing = sorted(set(range(1, parts + 1)) - {part.number for part in found})
    if missing:
        names = ", ".join(f"{number}/{parts}" for number in missing)
        raise RequestError(
            f"of {parts} parts these are missing: {names}",
            f"grader batch SUBMISSIONS --out {folder} --seed N --shard {missing[0]}/{parts}",
        )
    return sorted(found, key=lambda part: part.number)


def absorb_all(ledger: Ledger, parts: list[Part]) -> None:
    """Take every part into one ledger; `RequestError` if they were graded differently."""
    with ExitStack() as stack:
        for part in parts:  # all of them, before anything is taken in
            stack.enter_context(locked(part.ledger.parent))
        _absorb(ledger, parts)


def _absorb(ledger: Ledger, parts: list[Part]) -> None:
    settings = {part: settings_of(part.ledger) for part in parts}
    first = parts[0]
    for part in parts:
        for key in SHARED:
            if settings[part].get(key) != settings[first].get(key):
                raise RequestError(
                    f"{first.name} and {part.name} were graded with different options ({key})",
                    "grade one of them again, with the same --seed and --attempt",
                )
    with ledger.taking_in():
        pass  # whoever is in none of the parts any more is not there any more
    for part in parts:
        ledger.absorb(part.ledger)
    for key in SHARED:
        if key in settings[first]:
            ledger.put_text(key, settings[first][key])
