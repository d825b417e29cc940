"""Which submissions resemble each other more than the class does: advice, and never points.

Winnowed fingerprints of normalised tokens, after Schleimer, Wilkerson and Aiken, "Winnowing:
local algorithms for document fingerprinting", SIGMOD 2003. Names, strings and numbers count as
one each and comments not at all, so renaming hides nothing. What came with the stub, and what
many in the class have, counts for nobody; what is left is compared through an index, so that a
large class costs about as many steps as there are submissions.

Right answers to a small exercise converge: this is conservative, and no evidence by itself.
Nothing here runs or parses a submission, so that broken Python is compared like any other.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import median

Places = tuple[int, int]

GRAM = 12  # tokens of a fingerprint: shorter matches are noise
WINDOW = 6  # fingerprints of which one is kept: a match of GRAM + WINDOW - 1 tokens is found
FEW, PART = 10, 0.05  # what more students have, or a larger part of the class, is common
MOST = 100  # students; bounds the work in a class of any size
FEWEST = 12  # fingerprints of its own that a file needs to resemble another
ALIKE = 0.6  # of two files' own fingerprints are shared, at least

_LONG = r"""[rRbBuUfFtT]{0,2}(?:"{3}[\s\S]*?(?:"{3}|\Z)|'{3}[\s\S]*?(?:'{3}|\Z))"""
_SHORT = r"""[rRbBuUfFtT]{0,2}(?:"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)"""
_TOKEN = re.compile(
    rf"(?P<left_out>#[^\n]*|^[ \t]*{_LONG})"  # a string that begins a line is a docstring
    rf"|(?P<string>{_LONG}|{_SHORT})"
    r"|(?P<number>\.?\d[\w.]*)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*=?|//=?|->|:=|[-+*/%@&|^=<>!]=|<<|>>|\S)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Pair:
    """Two submissions that resemble each other in `exercises`, of which some may be `identical`.

    `share` is the part of their own fingerprints there, from 0 to 1, that both have.
    """

    students: tuple[str, str]
    exercises: tuple[str, ...]
    share: float
    identical: tuple[str, ...] = ()


@dataclass(frozen=True)
class _File:
    student: int
    digest: int
    prints: array[int]


class Similarity:
    """Takes the submissions of a class one by one; `common` are texts that everybody was given."""

    def __init__(self, common: Iterable[str]) -> None:
        self._common = {mark for text in common for mark in fingerprints(text)}
        self._students: list[str] = []
        self._files: dict[str, list[_File]] = {}

    def add(self, student: str, files: Mapping[str, str]) -> None:
        """Take a student's files, exercise name to text."""
        for exercise, text in files.items():
            own = array("Q", sorted(fingerprints(text) - self._common))
            if own:
                file = _File(len(self._students), hash("\n".join(text.split("\r\n")).strip()), own)
                self._files.setdefault(exercise, []).append(file)
        self._students.append(student)

    def pairs(self) -> list[Pair]:
        """Who resembles whom, the closest first."""
        found: dict[Places, list[_Match]] = {}
        for exercise, files in self._files.items():
            for match in _matches(exercise, files, self._limit):
                found.setdefault(match.students, []).append(match)
        pairs = [self._pair(students, matches) for students, matches in found.items()]
        return sorted(pairs, key=lambda pair: (-len(pair.exercises), -pair.share, pair.students))

    @property
    def _limit(self) -> int:
        """How many students may have a fingerprint that says something."""
        return min(MOST, max(FEW, int(PART * len(self._students))))

    def _pair(self, students: Places, matches: list[_Match]) -> Pair:
        first, second = students
        return Pair(
            (self._students[first], self._students[second]),
            tuple(match.exercise for match in matches),
            2 * sum(match.shared for match in matches) / sum(match.of for match in matches),
            tuple(match.exercise for match in matches if match.identical),
        )


@dataclass(frozen=True)
class _Match:
    """Two files of one exercise: `of` counts the fingerprints of both, so at most 2 x `shared`."""

    students: Places
    exercise: str
    shared: int
    of: int
    identical: bool = False


def _matches(exercise: str, files: list[_File], limit: int) -> Iterator[_Match]:
    twins = set()
    for match in _identical(exercise, files, limit):
        twins.add(match.students)
        yield match
    for (first, second), shared, of in _alike(files, limit):
        students = (files[first].student, files[second].student)
        same = files[first].digest == files[second].digest
        if not same and students not in twins:
            yield _Match(students, exercise, shared, of)


def _identical(exercise: str, files: list[_File], limit: int) -> Iterator[_Match]:
    """Files that are the same text; of many, each with the first of them."""
    groups: dict[int, list[_File]] = {}
    for file in files:
        if len(file.prints) >= FEWEST:
            groups.setdefault(file.digest, []).append(file)
    for group in groups.values():
        few = len(group) <= limit
        for one, other in (
            combinations(group, 2) if few else ((group[0], each) for each in group[1:])
        ):
            count = len(one.prints)
            yield _Match((one.student, other.student), exercise, count, 2 * count, True)


def _alike(files: list[_File], limit: int) -> Iterator[tuple[Places, int, int]]:
    """Places of two files that share most of what few others have, how much, and of how much.

    Most is what lies nearer to everything than to what the median file shares with the one that
    is closest to it: where right answers converge, only what converges further is told.
    """
    spread = Counter(mark for file in files for mark in file.prints)
    rare = [[mark for mark in file.prints if spread[mark] <= limit] for file in files]
    shares = {
        (first, second): (shared, len(rare[first]) + len(rare[second]))
        for (first, second), shared in _together(rare, spread).items()
    }
    closest = [0.0] * len(files)
    for places, (shared, of) in shares.items():
        for place in places:
            closest[place] = max(closest[place], 2 * shared / of)
    least = max(ALIKE, (1 + median(closest)) / 2)
    for places, (shared, of) in shares.items():
        if shared >= FEWEST and 2 * shared >= least * of:
            yield places, shared, of


def _together(rare: list[list[int]], spread: Counter[int]) -> Counter[Places]:
    """How many rare fingerprints two files share, of every two that share any."""
    holders: dict[int, list[int]] = {}
    for place, marks in enumerate(rare):
        for mark in marks:
            if spread[mark] > 1:
                holders.setdefault(mark, []).append(place)
    return Counter(pair for places in holders.values() for pair in combinations(places, 2))


def fingerprints(text: str) -> set[int]:
    """The winnowed fingerprints of a text: the least of the hashes in each window.

    The same in every process, unlike Python's own hashes.
    """
    grams = _hashes(list(tokens(text)))
    return {min(grams[at : at + WINDOW]) for at in range(max(0, len(grams) - WINDOW + 1))}


def tokens(text: str) -> Iterator[str]:
    """The text's tokens without comments and docstrings, with one name, string and number."""
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match.group()
        if kind == "sign" or (kind == "name" and keyword.iskeyword(token)):
            yield token
        elif kind != "left_out":
            yield {"name": "n", "string": "''", "number": "0"}[kind or ""]


def _hashes(found: list[str]) -> list[int]:
    """A hash of each GRAM tokens in a row."""
    grams = ("\0".join(found[at : at + GRAM]) for at in range(len(found) - GRAM + 1))
    digests = (hashlib.blake2b(gram.encode("utf-8", "replace"), digest_size=8) for gram in grams)
    return [int.from_bytes(digest.digest()) for digest in digests]
