"""The reference with known mistakes in it, and its answers to the cases.

Each program runs in this process; nothing of a student's runs here. Answers are kept: for one seed
each program answers each case once, for a whole class.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from grader.course.course import OUTPUT, Course, Exercise
from grader.grading.cases import Case
from grader.grading.diagnosis.answers import Answer
from grader.grading.diagnosis.asked import answer_of
from grader.grading.diagnosis.repeat import repeat
from grader.grading.direct import DirectCode
from grader.grading.programs import program, solutions
from grader.sandbox.host.proxies import Student
from grader.sandbox.program import Program

Stages = dict[tuple[str, str], Tensor]  # stages by the function and the name of the value


class Respondent:
    """One text of the exercise's solution, and its answers to the cases."""

    def __init__(
        self,
        course: Course,
        exercise: Exercise,
        text: str,
        seed: int,
        answers: dict[str, Answer],
    ) -> None:
        files = solutions(course, exercise.name)
        _, self._sources = program(course, exercise, {**files, exercise.name: text})
        self._exercise, self._seed, self.text = exercise, seed, text
        self._answers = answers  # answers by case, from earlier
        self._repeats: dict[str, str] = {}  # by case

    @functools.cached_property
    def _program(self) -> Program:
        return Program(self._sources)

    @property
    def _file(self) -> str:
        return self._sources[self._exercise.name].file

    def answer(self, case: Case) -> Answer:
        """Return the answer to a case, which is computed once."""
        if case.name not in self._answers:
            self._answers[case.name] = answer_of(lambda: self._ask(case), misuse=case.is_misuse)
        return self._answers[case.name]

    def _ask(self, case: Case) -> Any:
        code = self._code
        state = torch.random.get_rng_state()
        try:
            with self._program.active():
                return case.ask(Student(code), self._seed, self._exercise.name)
        finally:
            torch.random.set_rng_state(state)

    @property
    def _code(self) -> DirectCode:
        return _CopyingCode(self._program, self._exercise.name, ())

    def repeat(self, case: Case) -> str:
        """Return the calls of a case as a program that a student can run."""
        if case.name not in self._repeats:
            with self._program.active():
                ask = functools.partial(case.ask, seed=self._seed, exercise=self._exercise.name)
                self._repeats[case.name] = repeat(ask, self._code)
        return self._repeats[case.name]

    def stages(self, case: Case, names: Sequence[str]) -> Stages:
        """Return the values of the stages `names` in a case, by function.

        A stage is the final value of a local variable in this exercise's code, the output of a
        layer of that name, or `output`, the result of the case.
        """
        values: Stages = {}

        def ask() -> Any:
            with _collecting_stages(self._file, names, values):
                result = self._ask(case)
            # A truth value is not a stage, even if a case returns it.
            if OUTPUT in names and isinstance(result, Tensor) and result.dtype != torch.bool:
                values["", OUTPUT] = result.detach()
            return result

        answer_of(ask)
        return values


class _CopyingCode(DirectCode):
    """Code that gets copies of a case's tensors, as student code does in its own process.

    Otherwise a mistake that writes into its argument would here change the answer to a second call
    with the same tensor.
    """

    _shares = False

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function or class `name`, whose calls get copies."""
        original = super().function(name)

        @functools.wraps(original, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            if isinstance(original, type):
                made = original(*args, **kwargs)
                if isinstance(made, nn.Module):
                    made.register_forward_pre_hook(self._before_forward, with_kwargs=True)
                return made
            args, kwargs = self._copies(args, kwargs)
            return original(*args, **kwargs)

        return call

    @contextmanager
    def sharing(self, *written: Tensor) -> Iterator[None]:
        """Let the code write into the test's own tensors in the block."""
        self._shares = True
        try:
            yield
        finally:
            self._shares = False

    def _before_forward(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        return self._copies(args, kwargs)

    def _copies(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if self._shares:
            return args, kwargs
        return tuple(map(_copy, args)), {name: _copy(value) for name, value in kwargs.items()}


def _copy(value: Any) -> Any:
    """Return a copy of a tensor with the same strides; of a list or dict one of the same tensors.

    A tensor with a gradient is not copied: the gradient has to reach it, and torch refuses to
    write into it. Nor is a tensor in a list copied, because the copy would count as memory of the
    code.
    """
    if isinstance(value, list):
        return [_structure(item) for item in value]
    if isinstance(value, dict):
        return {key: _structure(item) for key, item in value.items()}
    if not isinstance(value, Tensor) or value.requires_grad or not value.numel():
        return value
    reach = 1 + sum((size - 1) * step for size, step in zip(value.shape, value.stride()))
    return value.as_strided((reach,), (1,)).clone().as_strided(value.shape, value.stride())


def _structure(value: Any) -> Any:
    return value if isinstance(value, Tensor) else _copy(value)


@contextmanager
def _collecting_stages(file: str, names: Sequence[str], values: Stages) -> Iterator[None]:
    """Add to `values` the values that the code in `file` gives to `names` in the block.

    Two functions may use one name for different things, so each has values of its own.
    """
    outputs: dict[nn.Module, Any] = {}  # which it keeps: another layer may get an ended one's id

    def keep(function: str, name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            values.setdefault((function, name), value.detach().clone())

    def after_layer(layer: nn.Module, inputs: Any, output: Any) -> None:
        outputs.setdefault(layer, output)

    def after_function(frame: FrameType, event: str, result: Any) -> None:
        if event != "return" or frame.f_code.co_filename != file:
            return
        owner, function = frame.f_locals.get("self"), frame.f_code.co_qualname
        for name in names:
            keep(function, name, frame.f_locals.get(name))
            layer = getattr(owner, name, None) if isinstance(owner, nn.Module) else None
            keep(function, name, outputs.get(layer) if isinstance(layer, nn.Module) else None)

    hook = nn.modules.module.register_module_forward_hook(after_layer)
    before = sys.getprofile()
    sys.setprofile(after_function)
    try:
        yield
    finally:
        sys.setprofile(before)
        hook.remove()
