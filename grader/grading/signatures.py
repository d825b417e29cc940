"""Signatures of wrong answers: short texts by which the same mistake is recognised later.

A signature has an entry for each case that came out wrong: the form of the answer, a weighted sum
of its numbers, and how far the sum of the same numbers may lie from it. So two spellings of one
mistake, which differ in rounding, have the same signature. One at the public seed finds the mistake
again in any class; as anybody can work out those answers, one at a secret seed has to confirm it.
Imports no torch.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

MAX_ENTRIES = 44  # of a signature, which so stays below `MAX_CHARACTERS`
MAX_CHARACTERS = 2048
KEY, FORM, IDENTITY = 3, 3, 3  # bytes of the hashes of a case's name, a form and a signature


class SignedAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What came out at one wrong case; an error has its kind as `form`, and no numbers."""

    case: str
    form: str
    total: float = 0.0
    slack: float = 0.0

    def same(self, other: SignedAnswer) -> bool:
        """Return whether two entries are the same answer up to rounding."""
        near = abs(self.total - other.total) <= max(self.slack, other.slack)
        return self.form == other.form and near


class Signature(msgspec.Struct, frozen=True, array_like=True):
    """The wrong answers of one solution: at ordinary calls, and at edges.

    `whole` says that all cases were asked: a call that does not end ends the asking. `seed` tells
    the secret seed of the cases from others; it is empty for the public one.
    """

    main: tuple[SignedAnswer, ...] = ()
    edges: tuple[SignedAnswer, ...] = ()
    whole: bool = True
    seed: str = ""


def entry(case: str, form: str, total: float = 0.0, slack: float = 0.0) -> SignedAnswer:
    """Return an entry, rounded for keeping."""
    rounded = float(f"{total:.9g}"), float(f"{slack:.2g}")
    return SignedAnswer(_hash(case, KEY), _hash(form, FORM), *rounded)


def written(
    main: Iterable[SignedAnswer], edges: Iterable[SignedAnswer], *, whole: bool, seed: str = ""
) -> str:
    """Return a signature as text; empty if nothing is wrong."""
    first = tuple(main)[:MAX_ENTRIES]
    rest = tuple(edges)[: MAX_ENTRIES - len(first)]
    found = Signature(first, rest, whole, seed)
    return msgspec.json.encode(found).decode() if first or rest else ""


@functools.lru_cache(maxsize=8192)
def parsed(text: str) -> Signature | None:
    """Return a signature from its text; None if it is not one."""
    if not text or len(text) > MAX_CHARACTERS:
        return None
    try:
        found = msgspec.json.decode(text, type=Signature)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return found if found.main or found.edges else None


def is_same_mistake(one: str, other: str) -> bool:
    """Return whether two signatures show the same mistake.

    Edges, such as rows of length 0, count only where nothing else is wrong: there the same mistake
    may come out in several ways.
    """
    first, second = parsed(one), parsed(other)
    if first is None or second is None or first.seed != second.seed:
        return False
    if bool(first.main) != bool(second.main):
        return False
    return _agree(first, second, "main" if first.main else "edges")


def is_same_everywhere(one: str, other: str) -> bool:
    """Return whether two signatures are the same, at edges too."""
    first, second = parsed(one), parsed(other)
    if first is None or second is None or first.seed != second.seed:
        return False
    if not (first.whole and second.whole):
        return False
    return _agree(first, second, "main") and _agree(first, second, "edges")


def are_comparable(one: str, other: str) -> bool:
    """Return whether two signatures are of the same cases with the same inputs."""
    first, second = parsed(one), parsed(other)
    return first is not None and second is not None and first.seed == second.seed


def identity(text: str) -> str:
    """Return a short name for a signature: the same for nearly all spellings of a mistake."""
    found = parsed(text) or Signature()
    rough = sorted((each.case, each.form) for each in found.main or found.edges)
    totals = sorted(f"{each.total:.2g}" for each in found.main or found.edges)
    return _hash(repr((rough, totals)), IDENTITY)


def bucket(text: str) -> frozenset[str]:
    """Return the cases that two whole signatures of one mistake have in common."""
    found = parsed(text) or Signature()
    return frozenset(each.case for each in found.main or found.edges)


def _agree(first: Signature, second: Signature, part: Literal["main", "edges"]) -> bool:
    """Return whether two signatures agree in a part: one cut short has fewer answers."""
    ours, theirs = _by_case(getattr(first, part)), _by_case(getattr(second, part))
    fewer, more = (theirs, ours) if first.whole else (ours, theirs)
    if first.whole == second.whole:
        fewer, more = sorted((ours, theirs), key=len)
    if not fewer.keys() <= more.keys() or (first.whole and second.whole and len(fewer) < len(more)):
        return False
    return all(each.same(more[case]) for case, each in fewer.items())


def _by_case(entries: Iterable[SignedAnswer]) -> Mapping[str, SignedAnswer]:
    return {each.case: each for each in entries}


def _hash(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()
