"""The calls that cases make of the reference: their branches, and the promises asked of them.

A branch is a value of a parameter that is a bool, has a few texts or may be None, or the number of
axes of the first argument. Everything is read off the arguments of the calls and the uses of their
results, in this process.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import torch
from torch import Tensor, nn

from grader.commands.branches import AND, AXES, PROMISES, AskedPromises, Branch
from grader.course.course import Course, Exercise
from grader.grading.diagnosis.answers import Answer, Values
from grader.grading.diagnosis.asked import answer_of, load_cases
from grader.grading.direct import DirectCode
from grader.grading.programs import program, solutions
from grader.sandbox import wire
from grader.sandbox.host.operations import OperationCounts
from grader.sandbox.host.proxies import Student
from grader.sandbox.host.training import TrainingLimits, TrainingLog
from grader.sandbox.program import Program

FLOATING = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
LARGE = 100.0  # larger numbers count as large
GIVEN = "given"  # the name of any value but None, except a tensor


def watch_calls(course: Course, exercise: Exercise, seed: int) -> AskedPromises:
    """Return the table of an exercise: its reference answers each case that decides."""
    reference = Program(program(course, exercise, solutions(course, exercise.name))[1])
    code, state = _WatchedCode(reference, exercise.name), torch.random.get_rng_state()
    for case in load_cases(exercise)[0]:
        if case.decides and not case.is_misuse:
            code.calls = []
            ask = functools.partial(case.ask, Student(code), seed, exercise.name)
            with reference.active():
                answer = answer_of(ask)
            code.end_case(says_numbers=_says_numbers(answer))
    torch.random.set_rng_state(state)
    return _merged(code.table)


def _merged(table: AskedPromises) -> AskedPromises:
    """Return the table with two branches of axes: the one of which most is asked, and the others.

    A tensor that may be None keeps a branch for each number of axes.
    """
    for branches in table.options:
        if branches[0].option.startswith(AXES):
            usual = max(branches, key=lambda branch: len(table.counts[branch]))
            counts = [table.counts.pop(branch) for branch in branches if branch != usual]
            other = usual._replace(value=f"other than {usual.value}")
            table.counts[other] = sum(counts, Counter())
        elif len(branches) > 2 and not table.counts.get(
            unused := branches[0]._replace(value=GIVEN), True
        ):
            table.counts.pop(unused)
    return table


class _Trains(Exception):
    """Raised in a call that trains, because that takes too long to watch."""


def _report(step: int, loss: float) -> None:
    """Stand for the `report` of a training."""


class _WatchedCode(DirectCode):
    """The reference, whose calls from outside are recorded."""

    def __init__(self, reference: Program, exercise: str) -> None:
        super().__init__(reference, exercise, ())
        self.table = AskedPromises()
        self.calls: list[tuple[list[Branch], set[str]]] = []  # of one case, with their promises
        self._made: dict[Any, dict[str, str]] = {}  # modules, and the options of their `__init__`
        self._names: dict[str, Any] = {}
        self._asks = ""  # the one promise that a block asks of its calls
        self._is_inside = False

    def end_case(self, *, says_numbers: bool) -> None:
        """Count the promises of the calls of one case; precision counts only for numbers."""
        moved = [call for call in self.calls if "another device" in call[1]]
        asked: dict[Branch, set[str]] = {}
        for branches, promises in moved or self.calls:  # calls before a move only prepare it
            single = promises - (set() if says_numbers else {"half precision"})
            every = {each for each in PROMISES if {*each.split(AND)} <= single}
            for branch in branches:
                asked.setdefault(branch, set()).update(every)
                self.table.unwatched.update(() if promises else (branch,))
        for branch, every in asked.items():
            self.table.counts.setdefault(branch, Counter()).update(every)

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function or class `name`, whose calls are recorded."""
        if name not in self._names:
            found: Any = super().function(name)
            self._names[name] = found if isinstance(found, type) else self._kept(found, name)
            for own, method in [*vars(found).items()] if isinstance(found, type) else ():
                if inspect.isfunction(method) and (own == "__init__" or not own.startswith("_")):
                    call = name if own in ("__init__", "forward") else f"{name}.{own}"
                    setattr(found, own, self._kept(method, call))
        return self._names[name]  # type: ignore[no-any-return]

    def _kept(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        signature = inspect.signature(function)
        known = {each: _values_of(of) for each, of in signature.parameters.items()}
        for option, values_of in known.items():
            for value in values_of:
                self.table.counts.setdefault(Branch(name, option, value), Counter())

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            owner, values = given.arguments.pop("self", None), given.arguments
            options = {each: _value(values[each]) for each in values if known[each]}
            if function.__name__ == "__init__":
                self._made[owner] = options
                return function(*args, **kwargs)
            if self._is_inside:
                return function(*args, **kwargs)
            options |= self._made.get(owner, {}) | _axes(values)
            trains = any(value is _report for value in values.values())
            promises = set() if trains else self._promises(owner, values)
            self.calls.append(([Branch(name, *option) for option in options.items()], promises))
            if trains:
                raise _Trains
            before, self._is_inside = torch.random.get_rng_state(), True
            try:
                result = function(*args, **kwargs)
            finally:
                self._is_inside = False
            if "values" in promises:
                if not torch.equal(before, torch.random.get_rng_state()):
                    promises.add("random draws")
                for tensor in _tensors(result):
                    if tensor.requires_grad:
                        tensor.register_hook(lambda _: promises.add("gradients"))  # type: ignore[no-untyped-call]
            return result

        return call

    def _promises(self, owner: Any, values: Mapping[str, Any]) -> set[str]:
        """Return the promises asked of a call, as far as its arguments show them."""
        if self._asks:
            return {self._asks}
        if "forward" in vars(owner or self):  # only a moved module has its own
            return {"another device"}
        modules = [each for each in (owner, *values.values()) if isinstance(each, nn.Module)]
        given = [*_tensors([*values.values()])]
        used = [*given, *(each for module in modules for each in module.parameters())]
        asked = {
            "values": True,
            "half precision": any(each.dtype in FLOATING[:2] for each in used),
            "large numbers": any(map(_is_large, used)),
            "training mode": any(module.training for module in modules),
            "views": not all(each.is_contiguous() for each in given),
            "an axis of size 1": any(1 in each.shape for each in given),
        }
        return {promise for promise, is_asked in asked.items() if is_asked}

    @contextlib.contextmanager
    def _asking(self, promise: str) -> Iterator[None]:
        before, self._asks = self._asks, promise
        try:
            yield
        finally:
            self._asks = before

    @contextlib.contextmanager
    def watched(self, watch: wire.Watch) -> Iterator[OperationCounts]:
        """Ask for the cost of the calls in the block; nothing is counted."""
        with self._asking("work" if watch == "work" else "memory"):
            yield OperationCounts(watch)

    @contextlib.contextmanager
    def sharing(self, *written: Tensor) -> Iterator[None]:
        """Ask the calls in the block to leave their arguments alone."""
        with self._asking("arguments left alone"):
            yield

    @contextlib.contextmanager
    def training(self, name: str) -> Iterator[tuple[Callable[[int, float], None], TrainingLog]]:
        """Yield the `report` for a training, which ends the case."""
        yield _report, TrainingLog(TrainingLimits(), lambda *_: None)


def _says_numbers(answer: Answer) -> bool:
    """Return whether an answer holds more than truth values, counts or zeros."""
    leaves = answer.leaves() if isinstance(answer, Values) else ()
    return any(
        leaf.dtype in FLOATING and leaf.value.any() for leaf in leaves if leaf.value is not None
    )


def _values_of(parameter: inspect.Parameter) -> tuple[str, ...]:
    """Return the values of an option that the signature lists; none if it is not an option."""
    kind, default = parameter.annotation, parameter.default
    if isinstance(default, bool) or kind in (bool, "bool"):
        return "False", "True"
    if default is None or "None" in str(kind):
        return "None", GIVEN
    texts = get_args(kind) if get_origin(kind) is Literal else [default]
    return tuple(repr(each) for each in texts if isinstance(each, str))


def _value(value: Any) -> str:
    if isinstance(value, Tensor):
        return "1 axis" if value.dim() == 1 else f"{value.dim()} axes"
    return repr(value) if value is None or isinstance(value, bool | str) else GIVEN


def _axes(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the number of axes of the first argument, as an option, if it is a tensor."""
    name, value = next(iter(values.items()), ("", None))
    return {f"{AXES}{name}": f"{value.dim()}"} if isinstance(value, Tensor) else {}


def _is_large(tensor: Tensor) -> bool:
    numbers = tensor.detach().double().nan_to_num(0.0, 0.0, 0.0)
    return bool((numbers.abs() > LARGE).any())


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield a tensor, or those in a list or tuple."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        yield from itertools.chain.from_iterable(map(_tensors, value))
