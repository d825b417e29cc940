"""Pairs of submissions that are more similar than the class in general; they affect no points.

The method is winnowing: fingerprints of normalised tokens are compared (Schleimer, Wilkerson and
Aiken, "Winnowing: local algorithms for document fingerprinting", SIGMOD 2003). Names count as one
token, as do strings and numbers, and comments are left out, so renaming hides nothing. Code from
the stub and code that many students share is left out. An index keeps the work about linear in the
class. Correct answers to a small exercise converge, so the thresholds are conservative, and a pair
is no evidence by itself. Submissions are neither run nor parsed: broken Python is compared too.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from grader.reports.summary import Pair, SimilarGroup

Indices = tuple[int, int]

GRAM = 12  # tokens in a fingerprint: shorter matches are noise
WINDOW = 6  # one fingerprint in a window is kept: a match of GRAM + WINDOW - 1 tokens is found
FEW, COMMON_SHARE = 10, 0.05  # more students, or a larger share, make it common
MOST = 100  # students that may share a fingerprint; bounds the work for a class of any size
MAX_SHOWN = 3  # pairs of a group that are shown side by side
FEWEST = 12  # fingerprints of its own that a file needs to be compared
SIMILAR = 0.6  # the least share of two files' own fingerprints that both have

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
class _ComparedFile:
    student: int
    digest: int
    prints: array[int]


class Similarity:
    """The fingerprints of a class; those of the texts in `common`, the stubs, are left out.

    `errors_of` is entered with each student, so that an error costs only their own comparison.
    """

    def __init__(
        self,
        common: Iterable[str],
        errors_of: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        self._errors_of = errors_of
        self._common = {mark for text in common for mark in fingerprints(text)}
        self._students: list[str] = []
        self._files: dict[str, list[_ComparedFile]] = {}

    def add(self, student: str, files: Mapping[str, str]) -> None:
        """Add a student's files, a text for each exercise."""
        number = len(self._students)
        self._students.append(student)  # first: if a file breaks this, the number is taken
        for exercise, text in files.items():
            own = array("Q", sorted(fingerprints(text) - self._common))
            if own:
                digest = hash(text.replace("\r\n", "\n").strip())
                file = _ComparedFile(number, digest, own)
                self._files.setdefault(exercise, []).append(file)

    def pairs(self) -> list[Pair]:
        """Return all pairs of similar submissions, the most similar first."""
        found: dict[Indices, dict[str, _Match]] = {}
        for exercise, own in self._files.items():
            files, spread = self._readable(own)
            for match in (*_identical(files, self._limit), *_similar(files, spread, self._limit)):
                found.setdefault(match.students, {})[exercise] = match
        pairs = []
        for students, matches in found.items():
            with self._errors_of(self._students[students[0]]):
                pairs.append(self._pair(students, matches))
        return sorted(pairs, key=lambda pair: (-len(pair.exercises), -pair.share, pair.students))

    def groups(self) -> list[SimilarGroup]:
        """Return the similar submissions in groups, those with the most similar pair first.

        Each in a group is similar to another one in it, in the same exercises.
        """
        found: dict[tuple[tuple[str, ...], ...], list[Pair]] = {}
        for pair in self.pairs():
            found.setdefault((pair.exercises, pair.identical), []).append(pair)
        return [group for own in found.values() for group in map(_group, _connected(own))]

    def _readable(self, own: list[_ComparedFile]) -> tuple[list[_ComparedFile], Counter[int]]:
        """Return the files that can be compared, and how many of them have each fingerprint."""
        files, spread = [], Counter[int]()
        for file in own:
            with self._errors_of(self._students[file.student]):
                spread.update(iter(file.prints))
                files.append(file)
        return files, spread

    @property
    def _limit(self) -> int:
        """The number of students above which a shared fingerprint is common."""
        return min(MOST, max(FEW, int(COMMON_SHARE * len(self._students))))

    def _pair(self, students: Indices, matches: Mapping[str, _Match]) -> Pair:
        first, second = students
        shared = sum(match.shared for match in matches.values())
        return Pair(
            (self._students[first], self._students[second]),
            tuple(matches),
            2 * shared / sum(match.total for match in matches.values()),
            tuple(exercise for exercise, match in matches.items() if match.identical),
        )


def _connected(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Return pairs by group: two pairs with a student in common are in the same one."""
    above: dict[str, str] = {}

    def top(student: str) -> str:
        while (over := above.setdefault(student, student)) != student:
            above[student] = above[over]
            student = over
        return student

    pairs = list(pairs)
    for pair in pairs:
        one, other = map(top, pair.students)
        above[other] = one
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(top(pair.students[0]), []).append(pair)
    return list(groups.values())


def _group(pairs: Sequence[Pair]) -> SimilarGroup:
    students = sorted({student for pair in pairs for student in pair.students})
    shares = [pair.share for pair in pairs]
    first = pairs[0]
    return SimilarGroup(
        tuple(students),
        first.exercises,
        first.identical,
        (min(shares), max(shares)),
        tuple(pair.students for pair in pairs[:MAX_SHOWN]),
    )


def shared_lines(one: str, other: str, common: Iterable[str]) -> tuple[set[int], set[int]]:
    """Return the lines, from 1, that two texts share and that `common` does not have."""
    left_out = {mark for text in common for mark, _ in _grams(text)}
    first, second = list(_grams(one)), list(_grams(other))
    both = ({mark for mark, _ in first} & {mark for mark, _ in second}) - left_out
    return _lines(first, both), _lines(second, both)


def _lines(grams: Iterable[tuple[int, range]], chosen: set[int]) -> set[int]:
    return {line for mark, lines in grams if mark in chosen for line in lines}


def _grams(text: str) -> Iterator[tuple[int, range]]:
    """Yield the hash of every `GRAM` successive tokens, and the lines of the tokens."""
    placed = list(_placed_tokens(text))
    hashes = _hashes([token for token, _ in placed])
    for at, mark in enumerate(hashes):
        yield mark, range(placed[at][1], placed[at + GRAM - 1][1] + 1)


@dataclass(frozen=True)
class _Match:
    """Two similar files of an exercise; `total` is the sum of the fingerprints of each."""

    students: Indices
    shared: int
    total: int
    identical: bool = False


def _identical(files: list[_ComparedFile], limit: int) -> Iterator[_Match]:
    """Yield the pairs of files with the same text; in a large group, each with the first one."""
    groups: dict[int, list[_ComparedFile]] = {}
    for file in files:
        if len(file.prints) >= FEWEST:
            groups.setdefault(file.digest, []).append(file)
    for group in groups.values():
        firsts = group if len(group) <= limit else group[:1]
        for at, one in enumerate(firsts, 1):
            count = len(one.prints)
            for other in group[at:]:
                yield _Match((one.student, other.student), count, 2 * count, identical=True)


def _similar(files: list[_ComparedFile], spread: Counter[int], limit: int) -> Iterator[_Match]:
    """Yield the pairs of similar files whose texts differ, with their rare fingerprints.

    The threshold adapts to the exercise. It is the midpoint between 1 and the share that the median
    file has in common with the file closest to it, and at least `SIMILAR`. Where correct answers
    converge, only the pairs that converge further are reported.
    """
    rare = [[mark for mark in file.prints if spread[mark] <= limit] for file in files]
    counts = {
        (first, second): (shared, len(rare[first]) + len(rare[second]))
        for (first, second), shared in _shared_counts(rare, spread).items()
    }
    closest = [0.0] * len(files)
    for pair, (shared, total) in counts.items():
        for index in pair:
            closest[index] = max(closest[index], 2 * shared / total)
    least = max(SIMILAR, (1 + median(closest or [0.0])) / 2)
    for (first, second), (shared, total) in counts.items():
        one, other = files[first], files[second]
        if one.digest != other.digest and shared >= FEWEST and 2 * shared >= least * total:
            yield _Match((one.student, other.student), shared, total)


def _shared_counts(rare: list[list[int]], spread: Counter[int]) -> Counter[Indices]:
    holders: dict[int, list[int]] = {}
    for index, marks in enumerate(rare):
        for mark in marks:
            if spread[mark] > 1:
                holders.setdefault(mark, []).append(index)
    return Counter(pair for indices in holders.values() for pair in combinations(indices, 2))


def fingerprints(text: str) -> set[int]:
    """Return the winnowed fingerprints of a text: the smallest hash of each window.

    They are the same in every process, unlike Python's own hashes.
    """
    grams = _hashes(list(tokens(text)))
    return {min(grams[at : at + WINDOW]) for at in range(max(0, len(grams) - WINDOW + 1))}


def tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a text, without comments and docstrings.

    Every name becomes `n`, every string `''` and every number `0`.
    """
    return (token for token, _ in _placed_tokens(text))


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text in pieces, each with its kind: that of a token, or "" between two tokens."""
    end = 0
    for match in _TOKEN.finditer(text):
        yield "", text[end : match.start()]
        yield match.lastgroup or "", match.group()
        end = match.end()
    yield "", text[end:]


def is_text_for_people(kind: str) -> bool:
    """Return whether a piece is a comment, a docstring or another string."""
    return kind in ("left_out", "string")


def _placed_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tokens of a text, each with its line, from 1."""
    line, until = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", until, match.start())
        until = match.start()
        kind, token = match.lastgroup, match.group()
        if kind == "sign" or (kind == "name" and keyword.iskeyword(token)):
            yield token, line
        elif kind != "left_out":
            yield {"name": "n", "string": "''", "number": "0"}[kind or ""], line


def _hashes(text_tokens: list[str]) -> list[int]:
    """Return a hash of every `GRAM` successive tokens."""
    words = [token.encode("utf-8", "replace") for token in text_tokens]
    return [
        int.from_bytes(hashlib.blake2b(b"\0".join(words[at : at + GRAM]), digest_size=8).digest())
        for at in range(len(words) - GRAM + 1)
    ]
