"""The names that teachers gave to mistakes that the course does not know. Imports no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from grader.course.named import Named
from grader.grading.code_text import code_tokens, without_remarks
from grader.grading.failures import SELF_EXPLAINING
from grader.grading.price import charged, price_of
from grader.grading.signatures import (
    are_comparable,
    is_same_everywhere,
    is_same_mistake,
    parsed,
)
from grader.report import Diagnosis, ExerciseResult
from grader.sandbox.cells import CELL

MAX_PROGRAM = 60_000  # characters; without it, other classes cannot be compared


def with_name(
    result: ExerciseResult, named: Iterable[Named], *, charge_once: bool
) -> ExerciseResult:
    """Return a result whose unnamed mistake has the teacher's name, if there is one for it.

    It is charged once only if all its answers, at edges too, are those of the named mistake: at a
    secret seed, because everybody may work out those to the public cases.
    """
    diagnosis = result.diagnosis
    if diagnosis is None or diagnosis.faults or not diagnosis.signature:
        return result
    for each in named:
        if not is_same_mistake(each.signature, diagnosis.signature):
            continue
        known = list(_comparable(each, diagnosis))
        if known and not any(is_same_mistake(one, diagnosis.secret) for one in known):
            continue
        is_same = any(is_same_everywhere(one, diagnosis.secret) for one in known)
        found = replace(result, diagnosis=_explained(result, diagnosis, each, is_same=is_same))
        is_charged = charge_once and found.diagnosis is not None and found.diagnosis.complete
        return charged(found, (), lambda wrong: None) if is_charged else found
    return result


@dataclass(frozen=True)
class GroupMember:
    """One of those who made an unnamed mistake: the result, and the text of the exercise."""

    result: ExerciseResult
    text: str


def confirmed_by(named: Named, members: Sequence[GroupMember]) -> Named:
    """Return a named mistake with what confirms it in others: what its members did.

    They have the same answers. What most of them fail counts as its consequence: one who gives
    these answers to the cases alone cannot have it excuse anything else.
    """
    if not members:
        return named
    counts = Counter(name for member in members for name in _failed(member.result))
    fails = tuple(name for name, count in counts.items() if 2 * count > len(members))
    secrets = dict.fromkeys([*named.secrets, *map(_secret_of, members)])
    secrets.pop("", None)
    plain = (member.text for member in members if CELL not in member.text)
    program = _program_of(next(plain, members[0].text))
    first_of_each_seed: dict[str, str] = {}
    for each in secrets:
        if (signature := parsed(each)) is not None:
            first_of_each_seed.setdefault(signature.seed, each)
    kept = tuple(first_of_each_seed.values())
    return msgspec.structs.replace(named, fails=fails, secrets=kept, program=program)


def _secret_of(member: GroupMember) -> str:
    return member.result.diagnosis.secret if member.result.diagnosis else ""


def _program_of(text: str) -> str:
    """Return a student's program without comments and docstrings, where a name could be."""
    bare = text if CELL in text else without_remarks(text)
    tokens = code_tokens(bare)
    starts = zip(tokens, tokens[1:], [*tokens[2:], ""])
    if any(at == [":", "NEWLINE"] and then != "INDENT" for *at, then in starts):
        bare = text  # a docstring was all that a body had
    return bare if len(bare) <= MAX_PROGRAM else ""


def _failed(result: ExerciseResult) -> list[str]:
    """Return the failed tests that do not say themselves what is wrong."""
    failed = (test for test in result.tests if test.outcome == "failed")
    return [test.name for test in failed if test.kind not in SELF_EXPLAINING]


def _comparable(named: Named, diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what a named mistake answers to the same secret cases, as far as that is known."""
    found = (*named.secrets, diagnosis.members.get(named.key, ""))
    return (each for each in found if are_comparable(each, diagnosis.secret))


def _explained(
    result: ExerciseResult, diagnosis: Diagnosis, named: Named, *, is_same: bool
) -> Diagnosis:
    """Return the diagnosis with the name; a test that the mistake does not fail shows others."""
    failed = _failed(result)
    shown = tuple(name for name in failed if name in named.fails)
    return replace(
        diagnosis,
        faults=(named.id,),
        says=named.says,
        hint=named.hint,
        tests=(shown or tuple(failed),),
        each=(named.says,),
        costs=(price_of(named.as_mistake(), result.max_points),),
        facts=(),
        repeat="",
        complete=is_same and bool(shown),
    )
