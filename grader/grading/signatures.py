"""Signatures of wrong answers: short texts that let the same mistake be recognised later.

A signature has an entry for each wrong case: the form of the answer, a weighted sum of its
numbers, and the tolerance of that sum. So two spellings of one mistake, which differ in rounding,
have the same signature. A signature at the public seed finds the mistake again in any class;
because anybody can compute those answers, a signature at a secret seed has to confirm it. Imports
no torch.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

MAX_ENTRIES = 44  # entries of a signature, which keeps it below `MAX_CHARACTERS`
MAX_CHARACTERS = 2048
KEY, FORM, IDENTITY = 3, 3, 3  # bytes of the hashes of a case's name, of a form and of a signature


class SignedAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer to one wrong case; an error has its kind as `form`, and no numbers."""

    case: str
    form: str
    total: float = 0.0
    slack: float = 0.0

    def same(self, other: SignedAnswer) -> bool:
        """Return whether two entries are the same answer, up to rounding."""
        near = abs(self.total - other.total) <= max(self.slack, other.slack)
        return self.form == other.form and near


class Signature(msgspec.Struct, frozen=True, array_like=True):
    """The wrong answers of one solution: at ordinary calls, and at edges.

    `whole` says that all cases were asked, which a call that hangs prevents. `seed` is the mark of
    the cases' secret seed; it is empty for the public one.
    """

    main: tuple[SignedAnswer, ...] = ()
    edges: tuple[SignedAnswer, ...] = ()
    whole: bool = True
    seed: str = ""


def entry(case: str, form: str, total: float = 0.0, slack: float = 0.0) -> SignedAnswer:
    """Return an entry, rounded for storage."""
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

    Edges, such as rows of length 0, count only if nothing else is wrong, because there the same
    mistake may have several results.
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
    """Return the wrong cases, which are the same in all whole signatures of one mistake."""
    found = parsed(text) or Signature()
    return frozenset(each.case for each in found.main or found.edges)


def _agree(first: Signature, second: Signature, part: Literal["main", "edges"]) -> bool:
    """Return whether two signatures agree in a part; one that was cut short has fewer answers."""
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
