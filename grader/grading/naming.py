"""The names that teachers gave to mistakes outside the catalogue. Imports no torch."""

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

MAX_PROGRAM = 60_000  # characters; a longer one is left out, and cannot confirm others


def with_name(
    result: ExerciseResult, named: Iterable[Named], *, charge_once: bool
) -> ExerciseResult:
    """Return a result whose unnamed mistake gets the teacher's name, if there is one.

    The mistake is charged once only if all its answers, at edges too, are those of the named
    mistake at a secret seed: anybody can compute the answers to the public cases.
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
    """A member of the group with an unnamed mistake: the result, and the text of the exercise."""

    result: ExerciseResult
    text: str


def confirmed_by(named: Named, members: Sequence[GroupMember]) -> Named:
    """Return a named mistake with the data of its members, which confirm it in other submissions.

    The members have the same answers. Tests that most of them fail count as consequences of the
    mistake: it excuses nothing else, because a program may give these answers only to the cases.
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
    """Return a student's program without comments and docstrings, which could hold a name."""
    bare = text if CELL in text else without_remarks(text)
    tokens = code_tokens(bare)
    starts = zip(tokens, tokens[1:], [*tokens[2:], ""])
    if any(at == [":", "NEWLINE"] and then != "INDENT" for *at, then in starts):
        bare = text  # the body had only a docstring
    return bare if len(bare) <= MAX_PROGRAM else ""


def _failed(result: ExerciseResult) -> list[str]:
    """Return the failed tests whose messages do not say everything."""
    failed = (test for test in result.tests if test.outcome == "failed")
    return [test.name for test in failed if test.kind not in SELF_EXPLAINING]


def _comparable(named: Named, diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the known answers of a named mistake to the same secret cases."""
    found = (*named.secrets, diagnosis.members.get(named.key, ""))
    return (each for each in found if are_comparable(each, diagnosis.secret))


def _explained(
    result: ExerciseResult, diagnosis: Diagnosis, named: Named, *, is_same: bool
) -> Diagnosis:
    """Return the diagnosis with the name; tests that the mistake does not fail show others."""
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
