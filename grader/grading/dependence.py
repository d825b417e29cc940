"""Tells whether a result depends on its inputs as much as the reference's result does.

Code that computes nothing can still be right at edges: it refuses misuse, keeps dtypes, leaves its
arguments alone. So a function is judged by what its results depend on: if they depend on too
little of its arguments and parameters, or on each part separately, it does not compute, whatever
checks it passes. The thresholds were found on all exercises: no right or nearly right program of
the corpora falls below them, and hardly a blank stays above.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from grader.course.course import Course, Exercise
from grader.errors import GraderError
from grader.grading.cases import Case
from grader.grading.compare import TOLERANCE
from grader.grading.direct import DirectCode
from grader.grading.parameters import BIAS, parameter_shapes
from grader.grading.programs import program, solutions
from grader.grading.recorded_calls import (
    CallLeaf,
    RecordedCall,
    RecordingCode,
    in_all_orders,
    layer_of,
    leaves_of,
    with_both,
)
from grader.report import NO_COMPUTATION, ExerciseResult, Outcome
from grader.sandbox.host.proxies import Student
from grader.sandbox.program import Program

LEAST_OF_ALL = 0.5  # the least mean share, over everything that the reference's result depends on
LEAST_OF_INPUT = 0.45  # the least share for each floating-point input
LEAST_TOGETHER = 0.3  # the least mean share, over pairs of these that do more together than alone
LEAST_TOGETHER_OF_INPUTS = 0.1  # the same over pairs of inputs
ONE_SLICE, SEVERAL = 1.05, 2.2  # slices along an axis on which a number depends on average
# The least correlation of results with the right ones, and of how many numbers: of fewer, noise may
# have more. No more count of one call, because in a large one, or in one that repeats itself, many
# numbers are alike.
LEAST_RELATED, LEAST_NUMBERS = 0.15, 100
MAX_TRIED = 3  # calls of a function: those whose result may depend on the most
MAX_RELATED = 12  # calls of a function whose results are compared with the right ones
MAX_PAIRS = 3  # pairs of changes, for each two leaves and along each axis
MAX_TOGETHER = 24  # pairs of leaves of which one is a layer: a model with many layers has hundreds
ROUNDING = 1e-9  # relative rounding of a number
LEAST_EFFECT = 1e-3  # on a number, as a part of the largest effect on the reference's
MAX_NAMES = 4  # names in a message


# Results of calls of one student's code, by the calls' `id`; the calls are kept so that no other
# object gets their `id`.
Kept = dict[int, tuple[RecordedCall, Tensor | None]]


@dataclass(frozen=True)
class Effects:
    """For each change of a leaf: the part of the result that changes, and by how much at most."""

    parts: tuple[float, ...]
    sizes: tuple[float, ...]


@dataclass(frozen=True)
class Amount:
    """For each change of a leaf: the part of a result that depends on it, right and here."""

    leaf: CallLeaf
    expected: tuple[float, ...]
    found: tuple[float, ...]

    @property
    def share(self) -> float:
        """The dependence of the code's result on the changes, as a share of the reference's.

        The axis does not count, because code along another axis computes as well.
        """
        return min(1.0, sum(self.found) / sum(self.expected))

    @property
    def axes(self) -> list[tuple[float, float, int, int]]:
        """For each axis: the changes on which a number depends, here and expected, of how many."""
        found = []
        for axis in sorted({*self.leaf.axes}):
            here = [n for n, each in enumerate(self.leaf.axes) if each == axis]
            sums = (sum(side[n] for n in here) for side in (self.found, self.expected))
            found.append((*sums, len(here), axis))
        return found  # type: ignore[return-value]

    @property
    def is_alone(self) -> bool:
        """Whether a number depends on one slice along an axis although it should on several.

        It does not count if the number depends on too many slices along another axis: then only
        the axis is wrong.
        """
        axes = self.axes if self.leaf.kind == "input" else []
        one = any(found <= ONE_SLICE and theirs >= SEVERAL for found, theirs, *_ in axes)
        return one and all(found <= theirs + ONE_SLICE - 1 for found, theirs, *_ in axes)


@dataclass(frozen=True)
class ChangedTwice:
    """Two changes of a call, and the part of the result's numbers that only both together change.

    Those are numbers whose change by both is not the sum of the single changes, as in a product.
    """

    calls: tuple[RecordedCall, RecordedCall, RecordedCall]  # with one, with the other, with both
    weight: float  # the weights of all pairs along an axis add up to 1
    least: float  # the least difference that counts: a part of the largest of all such pairs
    part: float  # the part on the reference


@dataclass(frozen=True)
class Expected:
    """A recorded call, the reference's result, and the changes on which the result depends."""

    call: RecordedCall
    result: Tensor
    effects: tuple[tuple[CallLeaf, Effects], ...]
    any_effect: bool  # whether a change in any single number counts, as for draws and whole numbers
    # The call with the axes of its single input turned, if that does more than turn the result.
    turned: RecordedCall | None
    pairs: Mapping[tuple[str, str], Sequence[ChangedTwice]]  # pairs by the names of two leaves


class Dependence:
    """The dependences of the results of an exercise, by the names that it implements.

    The seed of the calls must be as secret as that of the hidden inputs, because code that is
    right at a recorded call counts as computing.
    """

    def __init__(
        self, course: Course, exercise: Exercise, cases: Sequence[Case], seed: int
    ) -> None:
        self._course, self._exercise = course, exercise
        self._cases, self._seed = cases, seed
        self._expected: dict[tuple[str, int], Expected | None] = {}
        self._right: dict[tuple[str, ...], list[tuple[RecordedCall, list[Tensor | None]]]] = {}
        self._program = self._with(exercise.read("solution.py"))

    @functools.cached_property
    def _calls(self) -> dict[str, list[RecordedCall]]:
        """For each name, a few calls, first those whose result may depend on the most.

        The last is in float32, for code that works only in that dtype.
        """
        found = {name: calls[:MAX_TRIED] for name, calls in self._calls_of_all_sizes.items()}
        return {name: [*calls, calls[0].in_float32] for name, calls in found.items()}

    @functools.cached_property
    def _calls_of_all_sizes(self) -> dict[str, list[RecordedCall]]:
        by_name: dict[str, dict[Any, RecordedCall]] = {}
        with self._program.active(), _undisturbed_draws():
            for call in sorted(self._recorded(), key=lambda call: -len(call.leaves)):
                by_name.setdefault(call.name, {}).setdefault(call.sizes, call)
        return {name: [*calls.values()] for name, calls in by_name.items()}

    def _answers(self, name: str) -> Iterator[Expected]:
        """Yield the reference's answers to the calls of a function, each computed once."""
        for place, call in enumerate(self._calls[name]):
            if (name, place) not in self._expected:
                with self._program.active(), _undisturbed_draws():
                    reference = Student(DirectCode(self._program, self._exercise.name, ()))
                    self._expected[name, place] = _expected(reference, call)
            if expected := self._expected[name, place]:
                yield expected

    def lacking(self, student: Student, known: Iterable[str] = ()) -> dict[str, str]:
        """Return, for each function that does not compute, a sentence on its missing dependences.

        Functions are left out that are right at a recorded call, or that answer as one of the
        programs `known`, which are the solution with a named mistake.
        """
        found = {}
        for name in self._calls:
            says, expected = _lack_at(student, self._answers(name))
            if expected and not says and self._is_unrelated(student, expected):
                says = f"no result of `{name}` has anything to do with the right one"
            if expected and says and not self._is_known(student, expected, known):
                found[name] = says
        return found

    def computing(self, student: Student) -> dict[str, bool]:
        """Return the functions that compute, each with whether it is right at a recorded call."""
        lacking, found = self.lacking(student), {}
        for name in self._calls:
            if name not in lacking and (expected := next(self._answers(name), None)):
                answer = _try(student, expected.call)
                found[name] = answer is not None and _is_same(answer, expected.result)
        return found

    def _is_unrelated(self, student: Student, expected: Expected) -> bool:
        """Return whether a function's results have no more to do with the right ones than noise.

        Noise can depend on all that a result depends on. A wrong result of code that computes goes
        up and down with the right one, or the other way around.
        """
        name, asked = expected.call.name, {*map(layer_of, expected.call.parameters)}
        layers = _layers(student, expected.call)
        missing, others = asked - layers, layers - asked
        if len(missing) not in (0, len(others)):
            return False  # as if several layers are one
        related, numbers = defaultdict[int, float](float), 0
        for call, right in self._right_results(name, sorted(missing)):
            given = _with_neutral(student, call) if others and not missing else call
            answer = _try(student, given)
            count = 0
            for place, each in enumerate(right):
                if answer is None or each is None or answer.shape != each.shape:
                    continue
                if _is_same(answer.sort().values, each.sort().values):
                    return False  # the axes of a result may be in any order
                share, count = _relation(call, answer, each, draws=expected.any_effect)
                related[place] += share * count
            numbers += count
        most = max(map(abs, related.values()), default=0)
        return numbers >= LEAST_NUMBERS and most < LEAST_RELATED * numbers

    def _right_results(
        self, name: str, renamed: Sequence[str]
    ) -> list[tuple[RecordedCall, list[Tensor | None]]]:
        """Return calls of a function with the reference's results, one for each order of `renamed`.

        If these layers have other names in the code, nobody knows which is which.
        """
        place = name, *renamed
        if place not in self._right:
            found = []
            with self._program.active(), _undisturbed_draws():
                reference = Student(DirectCode(self._program, self._exercise.name, ()))
                for call in self._calls_of_all_sizes[name][:MAX_RELATED]:
                    answers = [_try(reference, each) for each in in_all_orders(call, renamed)]
                    found.append((call, answers))
            self._right[place] = found
        return self._right[place]

    def _is_known(self, student: Student, expected: Expected, known: Iterable[str]) -> bool:
        """Return whether one of the programs gives the same answer, or fails as well."""
        answer = _try(student, expected.call)
        for text in known:
            mistaken = self._with(text)
            with mistaken.active(), _undisturbed_draws():
                code = DirectCode(mistaken, self._exercise.name, ())
                theirs = _try(Student(code), expected.call)
            if answer is None or theirs is None:
                if answer is theirs:
                    return True
            elif _is_same(answer, theirs):
                return True
        return False

    def _with(self, text: str) -> Program:
        files = solutions(self._course, self._exercise.name)
        _, sources = program(self._course, self._exercise, {**files, self._exercise.name: text})
        return Program(sources)

    def _recorded(self) -> Iterator[RecordedCall]:
        """Yield the ordinary calls of the reference that the cases make."""
        code = RecordingCode(self._program, self._exercise.name, ())
        # In an exercise that trains, other cases may take long.
        trains = self._exercise.training is not None
        for case in self._cases:
            if not case.tells:
                continue
            if case.aspect == "values" or not (trains or case.about.is_edge):
                with contextlib.suppress(Exception):  # other calls are recorded all the same
                    case.ask(Student(code), self._seed, self._exercise.name)
        yield from code.calls


@contextlib.contextmanager
def _undisturbed_draws() -> Iterator[None]:
    state = torch.random.get_rng_state()
    try:
        yield
    finally:
        torch.random.set_rng_state(state)


def _expected(reference: Student, call: RecordedCall) -> Expected | None:
    """Return the dependences of the reference's result of a call; None if there are none.

    For a filter, which sets some numbers to -inf and keeps the others, only the set of hidden
    numbers counts.
    """
    result = _try(reference, call)
    if result is not None and result.isinf().any():
        call = replace(call, hides=True)
        result = result.isinf().double()
    if result is None or _is_trivial(result):
        return None
    leaves = list(leaves_of(call, _shaping(reference, call)))
    draws = any(_effects(reference, result, leaves[-1], any_effect=True).parts)
    any_effect = draws or bool((result == result.round()).all())
    kept: Kept = {}
    found = []
    for leaf in leaves:
        works = [n for n, each in enumerate(leaf.changed) if _fits(reference, each, result, kept)]
        working = CallLeaf(
            *(leaf.name, leaf.kind, tuple(leaf.changed[n] for n in works)),
            tuple(leaf.axes[n] for n in works) if leaf.axes else (),
        )
        effects = _effects(reference, result, working, kept=kept, any_effect=any_effect)
        if any(effects.parts):
            found.append((working, effects))
    if all(leaf.kind == "seed" for leaf, _ in found):
        return None
    turned = None if draws else _turned(reference, call)
    working_leaves = [leaf for leaf, _ in found]
    pairs = {} if any_effect else _pairs(reference, call, result, working_leaves, kept)
    return Expected(call, result, tuple(found), any_effect, turned, pairs)


def _is_trivial(result: Tensor) -> bool:
    """Return whether code without computation may give this: nothing, zeros, one number."""
    return bool((result == 0).all() or (result.numel() > 1 and (result == result[0]).all()))


def _pairs(
    reference: Student,
    call: RecordedCall,
    result: Tensor,
    leaves: Sequence[CallLeaf],
    kept: Kept,
) -> dict[tuple[str, str], list[ChangedTwice]]:
    """Return some pairs of changes for each two leaves that do more together than alone.

    Two changes of one input are along the same axis, and all axes count, because code may work
    along another one.
    """
    rng = random.Random(call.seed)
    found = {}
    leaves = [leaf for leaf in leaves if leaf.kind in ("input", "layer")]
    each_two = [*itertools.combinations_with_replacement(leaves, 2)]
    for one, other in _few(each_two, call.seed):
        by_axis: dict[int, list[tuple[RecordedCall, RecordedCall]]] = {}
        for n, first in enumerate(one.changed):
            for m, second in enumerate(other.changed):
                axis = one.axes[n] if one is other and one.axes else 0
                if one is not other or (n < m and (not one.axes or axis == one.axes[m])):
                    by_axis.setdefault(axis, []).append((first, second))
        calls = []
        for all_of in by_axis.values():
            chosen = rng.sample(all_of, min(len(all_of), MAX_PAIRS))
            for first, second in chosen:
                if (both := with_both(call, first, second)) is not None:
                    calls.append((1 / len(chosen), (first, second, both)))
        sizes = [_together(reference, result, each, 0.0, kept)[1] for _, each in calls]
        if largest := max(sizes, default=0.0):
            least = LEAST_EFFECT * largest
            found[one.name, other.name] = [
                ChangedTwice(
                    each, weight, least, _together(reference, result, each, least, kept)[0]
                )
                for weight, each in calls
            ]
    return found


def _few(
    each_two: Sequence[tuple[CallLeaf, CallLeaf]], seed: int
) -> Iterator[tuple[CallLeaf, CallLeaf]]:
    """Yield all pairs of inputs, and at most `most` other pairs, in their order."""
    others = [n for n, two in enumerate(each_two) if any(leaf.kind == "layer" for leaf in two)]
    left = {*random.Random(seed).sample(others, max(0, len(others) - MAX_TOGETHER))}
    yield from (two for n, two in enumerate(each_two) if n not in left)


def _together(
    student: Student,
    result: Tensor,
    calls: Sequence[RecordedCall],
    least: float,
    kept: Kept,
) -> tuple[float, float]:
    """Return the part of a result's numbers that only two changes together change, and how much.

    A difference of at most `least` does not count, nor one of rounding.
    """
    found = [_try(student, call, kept) for call in calls]
    if any(each is None or each.shape != result.shape for each in found):
        return 0.0, 0.0
    one, other, both = (each for each in found if each is not None)
    more = (both - one - other + result).abs().nan_to_num(0, 0, 0)
    size = torch.stack([one, other, both, result]).abs().nan_to_num(0, 0, 0).amax(0)
    does = more > torch.clamp(LEAST_EFFECT**2 * (1 + size), min=least)
    return does.double().mean().item(), more[does].max().item() if does.any() else 0.0


def _together_shares(
    student: Student, expected: Expected, result: Tensor, kept: Kept
) -> Iterator[tuple[float, bool]]:
    """Yield, for each two leaves, the share of their joint effect that the code shows.

    With each share comes whether both leaves are inputs.
    """
    leaves = {leaf.name: leaf for leaf, _ in _comparable(student, expected)}
    for names, pairs in expected.pairs.items():
        if leaves.keys() >= {*names}:
            here = [_together(student, result, p.calls, p.least, kept)[0] for p in pairs]
            amount = sum(p.weight * part for p, part in zip(pairs, here, strict=True))
            share = min(1.0, amount / sum(p.weight * p.part for p in pairs))
            yield share, all(leaves[name].kind == "input" for name in names)


def _mean(shares: Collection[float]) -> float:
    return sum(shares) / len(shares) if shares else 1.0


def _shaping(reference: Student, call: RecordedCall) -> list[str]:
    """Return the names of the options that change a module's parameters."""
    found = []
    for name, value in (call.options or {}).items():
        if isinstance(value, bool):
            made = getattr(reference, call.name)(**{**(call.options or {}), name: not value})
            if parameter_shapes(made).keys() != call.parameters.keys():
                found.append(name)
    return found


def _fits(reference: Student, call: RecordedCall, result: Tensor, kept: Kept) -> bool:
    """Return whether a changed call works and returns as many numbers as before."""
    changed = _try(reference, call, kept)
    return changed is not None and changed.shape == result.shape


def _try(student: Student, call: RecordedCall, kept: Kept | None = None) -> Tensor | None:
    """Return the result of a call; None if the code fails. Raises `GraderError`."""
    if kept is not None and id(call) in kept:
        return kept[id(call)][1]
    try:
        answer = call.answer(student)
    except GraderError:
        raise
    except Exception:  # errors of programs in this process
        answer = None
    if kept is not None:
        kept[id(call)] = call, answer
    return answer


def _effects(
    student: Student,
    result: Tensor,
    leaf: CallLeaf,
    sizes: Sequence[float] = (),
    kept: Kept | None = None,
    *,
    any_effect: bool,
) -> Effects:
    """Return, for each change of a leaf, the part of the result's numbers that it changes.

    With `any_effect`, it is 1 if any number changes. A number counts as changed if it differs by a
    part of `sizes`, the largest differences of the reference: a smaller difference is no
    computation. A call that fails has no effect.
    """
    parts, largest = [], []
    for number, call in enumerate(leaf.changed):
        changed = _try(student, call, kept)
        if changed is None or changed.shape != result.shape:
            parts.append(0.0)
            largest.append(0.0)
            continue
        least = LEAST_EFFECT * sizes[number] if sizes else 0.0
        differs = _differs(changed, result) & ((changed - result).abs() > least)
        parts.append(float(differs.any()) if any_effect else differs.double().mean().item())
        largest.append(
            (changed - result)[differs].abs().nan_to_num().max().item() if differs.any() else 0.0
        )
    return Effects(tuple(parts), tuple(largest))


def _differs(one: Tensor, other: Tensor) -> Tensor:
    """Return which numbers differ by more than rounding; nan, the mark of varying ones, never."""
    unknown = one.isnan() | other.isnan()
    return ~((one - other).abs() <= ROUNDING * (1 + other.abs())) & ~unknown & (one != other)


def _turned(reference: Student, call: RecordedCall) -> RecordedCall | None:
    """Return the call with its single input turned, unless that only turns the result."""
    tensors = [name for name, value in call.inputs.items() if isinstance(value, Tensor)]
    if len(tensors) != 1 or call.inputs[tensors[0]].ndim < 2:
        return None
    turned = replace(call, inputs={**call.inputs, tensors[0]: call.inputs[tensors[0]].mT})
    return None if _only_turns(reference, call, turned) is not False else turned


def _only_turns(student: Student, call: RecordedCall, turned: RecordedCall) -> bool | None:
    """Return whether turning the input turns the result and does no more; None if it fails."""
    (name,) = (name for name, value in call.inputs.items() if isinstance(value, Tensor))
    shape = call.inputs[name].shape
    one, other = _try(student, call), _try(student, turned)
    if (
        one is None
        or other is None
        or one.numel() != shape.numel()
        or other.numel() != shape.numel()
    ):
        return None
    return not _differs(other.view(turned.inputs[name].shape).mT.flatten(), one).any()


def _lack_at(student: Student, calls: Iterable[Expected]) -> tuple[str, Expected | None]:
    """Return how a function fails to compute, at the first call that it answers.

    Empty if it computes. Code that fails at all these ordinary calls does not compute.
    """
    expected = None
    for expected in calls:
        result = _steady(student, expected.call)
        if result is not None:
            return _lack(student, expected, result), expected
    says = f"`{expected.call.name}` fails at ordinary calls" if expected else ""
    return says, expected


def _lack(student: Student, expected: Expected, result: Tensor) -> str:
    """Return how a function fails to compute, from its result of a call; empty if it computes."""
    if _is_same(result, expected.result):
        return ""
    if result.isnan().all():
        return f"no number in the result of `{expected.call.name}` stays the same from call to call"
    kept: Kept = {}
    amounts = []
    for leaf, theirs in _comparable(student, expected):
        effects = _effects(
            student, result, leaf, theirs.sizes, kept, any_effect=expected.any_effect
        )
        amounts.append(Amount(leaf, theirs.parts, effects.parts))
    inputs = [each.share for each in amounts if each.leaf.kind == "input"]
    inputs = inputs or [each.share for each in amounts if each.leaf.kind == "whole"]
    mean = sum(each.share for each in amounts) / len(amounts)
    is_alone = any(each.is_alone for each in amounts)
    if mean <= LEAST_OF_ALL or min(inputs, default=1.0) <= LEAST_OF_INPUT or is_alone:
        return _in_words(expected.call, amounts)
    if expected.turned and _only_turns(student, expected.call, expected.turned):
        return f"each number in the result of `{expected.call.name}` depends on one number alone"
    together = list(_together_shares(student, expected, result, kept))
    inputs = [share for share, of_inputs in together if of_inputs]
    shares = [share for share, _ in together]
    if _mean(shares) <= LEAST_TOGETHER or _mean(inputs) <= LEAST_TOGETHER_OF_INPUTS:
        return (
            f"the result of `{expected.call.name}` adds up parts that do not depend on each other"
        )
    return ""


def _steady(student: Student, call: RecordedCall) -> Tensor | None:
    """Return the result of a call, with nan for the numbers that vary from call to call."""
    one, other = _try(student, call), _try(student, call)
    if one is None or other is None or one.shape != other.shape:
        return None
    return one.masked_fill(_differs(one, other), torch.nan)


def _comparable(student: Student, expected: Expected) -> list[tuple[CallLeaf, Effects]]:
    """Return the leaves on which the code's result can depend: not layers of another form."""
    layers, call = _layers(student, expected.call), expected.call
    has_others = bool(layers - {*map(layer_of, call.parameters)})
    return [
        (leaf, effects)
        for leaf, effects in expected.effects
        if leaf.kind != "layer" or leaf.name in layers or not has_others
    ]


def _layers(student: Student, call: RecordedCall) -> set[str]:
    """Return the names of the layers of the module that a call makes, if it makes one."""
    if call.options is None:
        return set()
    return {*map(layer_of, parameter_shapes(getattr(student, call.name)(**call.options)))}


def _with_neutral(student: Student, call: RecordedCall) -> RecordedCall:
    """Return a call that gives layers of the student's own the numbers that change least."""
    shapes = parameter_shapes(getattr(student, call.name)(**(call.options or {})))
    own = {
        name: torch.eye(*shape) if len(shape) == 2 else torch.full(shape, float(BIAS not in name))
        for name, shape in shapes.items()
        if name not in call.parameters
    }
    return replace(call, parameters={**call.parameters, **own})


def _relation(
    call: RecordedCall, answer: Tensor, right: Tensor, *, draws: bool
) -> tuple[float, int]:
    """Return the correlation of an answer with the right one, and of how many free numbers.

    What both have in common with an input of as many numbers does not count: noise that is added to
    the input is still noise, unless the code draws. Nor do whole numbers, such as the zeros of a
    mask or letters.
    """
    inputs = [v for v in call.inputs.values() if isinstance(v, Tensor) and not draws]
    alike = [value.flatten().double() for value in inputs if value.numel() == right.numel()]
    known = torch.stack([torch.ones_like(right), *alike], dim=1)
    counts = answer.isfinite() & right.isfinite() & (right != right.round())
    counts &= known.isfinite().all(1)
    known, both = known[counts], torch.stack([answer, right], dim=1)[counts]
    basis, sizes, _ = torch.linalg.svd(known, full_matrices=False)
    basis = basis[:, sizes > ROUNDING * sizes.max()] if len(known) else basis
    count = len(both) - basis.shape[1]
    left = both - basis @ (basis.mT @ both)
    norms = left.norm(dim=0)
    if count <= 0 or (norms <= ROUNDING * both.norm(dim=0)).any():
        return 0.0, 0
    return float(left[:, 0] @ left[:, 1] / norms.prod()), min(count, LEAST_NUMBERS)


def _is_same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    relative, absolute = TOLERANCE[torch.float64]
    return bool(torch.isclose(one, other, relative, absolute, equal_nan=True).all())


def _in_words(call: RecordedCall, amounts: Sequence[Amount]) -> str:
    """Return a sentence on how little the result of a function depends on."""
    without = [f"`{each.leaf.name}`" for each in amounts if each.share == 0]
    says = []
    if without:
        names = " or ".join(without[:MAX_NAMES]) + (" …" if len(without) > MAX_NAMES else "")
        says.append(f"no result of `{call.name}` changes with {names}")
    for each in amounts:
        axes = [(found, *rest) for found, *rest in each.axes if found < rest[0] - 0.05]
        if each.leaf.kind == "input" and each.share > 0 and axes:
            found, expected, count, axis = min(axes, key=lambda each: each[0] / each[1])
            says.append(
                f"a number that it returns depends on {found:.1f} of the {count} slices of "
                f"`{each.leaf.name}` along axis {axis} on average; it should be {expected:.1f}"
            )
    return "; ".join(says) or f"the result of `{call.name}` depends on too little"


def without_computing(
    result: ExerciseResult,
    lacking: Mapping[str, str],
    asked: Mapping[tuple[str, str], Set[str]],
) -> ExerciseResult:
    """Return a result in which every check that asked for a function in `lacking` fails.

    `lacking` says how each function fails to compute, and `asked` has each check's functions.
    """

    def judged(test: Outcome) -> Outcome:
        names = sorted(asked.get((result.name, test.name), set()) & lacking.keys())
        if not names or not test.max_points:
            return test
        if test.outcome == "passed" and test.points:
            says = lacking[names[0]]
            return replace(test, outcome="failed", points=0, message=says, kind=NO_COMPUTATION)
        if test.wrong:  # no similar mistake excuses it
            return replace(test, kind=NO_COMPUTATION)
        return test

    tests = tuple(map(judged, result.tests))
    return replace(result, tests=tests, points=sum(test.points for test in tests))
