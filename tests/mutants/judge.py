"""A second judge: whether a text does what the reference does, on far more calls than a suite asks.

What the statement leaves open is no difference: the kind and the text of an error, the order in
which layers are made, how a mask is kept, which of the right random draws a dropout makes.
Everything runs in this process.
"""

from __future__ import annotations

import contextlib
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from mutants.asking import Random
from mutants.questions import CALLS
from torch import Tensor

from grader.course.course import Course, Exercise
from grader.grading.cases import Case
from grader.grading.diagnosis.answers import Answer, Raised, Values
from grader.grading.diagnosis.asked import load_cases
from grader.grading.diagnosis.respondent import Respondent
from grader.grading.programs import program
from grader.grading.rng import Rng
from grader.sandbox.program import Program

DRAWS, CASE_SEEDS = 30, 20
SECONDS = 180.0  # of CPU time for one text; one that takes longer differs
RANDOM_DRAWS = 600  # of a dropout, where two programs draw in another order
LIMIT = 5.0  # standard errors between two means of as many draws
# Relative and absolute; other types: 0.06. A softmax in float32 that is cast back is right.
COARSE = {torch.float64: (1e-6, 1e-5), torch.float32: (1e-3, 1e-3)}
EXTREME = 1e-3, 1e-5  # relative and absolute, where scores of 1e12 leave few digits
REFUSED = "refused"


class Judge:
    """Compares texts of one exercise with its reference; the reference answers once."""

    def __init__(
        self, course: Course, exercise: Exercise, draws: int = DRAWS, seeds: int = CASE_SEEDS
    ) -> None:
        self._course, self._exercise = course, exercise
        self._draws, self._seeds = draws, seeds
        self._reference = self._module(exercise.read("solution.py"))
        self._expected: dict[int, list[Any]] = {}
        self._respondents: dict[int, Respondent] = {}

    def _module(self, text: str) -> Program:
        files = {name: self._course[name].read("solution.py") for name in self._course.names}
        _, sources = program(self._course, self._exercise, {**files, self._exercise.name: text})
        return Program(sources)

    def difference(self, text: str) -> str:
        """Return the first call on which `text` differs from the reference; "" if none does."""
        warnings.simplefilter("ignore")
        try:
            with _deadline(SECONDS):
                return self._by_calls(text) or self._by_cases(text)
        except TimeoutError:
            return f"it takes more than {SECONDS:.0f} s"

    def _by_calls(self, text: str) -> str:
        made = self._module(text)
        try:
            module = made.load(self._exercise.name)
        except Exception as error:
            return f"importing it raises {type(error).__name__}: {error}"
        for number in range(self._draws):
            with made.active():
                questions = CALLS[self._exercise.name](module, Rng(number))
                try:
                    for (what, call), expected in zip(questions, self._answers(number)):
                        if problem := _compared(_answer(call), expected):
                            return f"draw {number}: {what}: {problem}"
                except TimeoutError:
                    raise
                except Exception as error:
                    return f"draw {number}: {type(error).__name__}: {error}"
        return ""

    def _answers(self, number: int) -> list[Any]:
        """Return the reference's answers to the calls of one draw."""
        if number not in self._expected:
            with self._reference.active():
                module = self._reference.load(self._exercise.name)
                questions = CALLS[self._exercise.name](module, Rng(number))
                self._expected[number] = [_answer(call) for _, call in questions]
        return self._expected[number]

    def _by_cases(self, text: str) -> str:
        for seed in range(self._seeds):
            theirs = self._respondent(text, seed)
            if seed not in self._respondents:
                self._respondents[seed] = self._respondent(self._exercise.read("solution.py"), seed)
            for case in load_cases(self._exercise)[0]:
                if case.aspect == "training":  # may draw in another order; the calls ask this
                    continue
                ours, answer = self._respondents[seed].answer(case), theirs.answer(case)
                if isinstance(ours, Raised) and isinstance(answer, Raised):
                    continue
                if not ours.same(answer) and not _is_rounding(case, ours, answer):
                    return f"case {case.name}, seed {seed}"
        return ""

    def _respondent(self, text: str, seed: int) -> Respondent:
        return Respondent(self._course, self._exercise, text, seed, {})


def _is_rounding(case: Case, ours: Answer, theirs: Answer) -> bool:
    """Return whether other orders of the same operations can give these digits, where few count."""
    if case.aspect == "dtype" or case.within:
        return ours.is_near(theirs)
    if not isinstance(ours, Values) or not isinstance(theirs, Values) or ours.form != theirs.form:
        return False
    relative, absolute = EXTREME
    close = torch.isclose(ours.numbers, theirs.numbers, relative, absolute, equal_nan=True)
    return case.aspect == "extreme scores" and bool(close.all())


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` if the block takes longer; needs the main thread."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- answers --------------------------------------------------------------------------------------


def _answer(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or that it was refused."""
    try:
        return call()
    except TimeoutError:
        raise
    except Exception:
        return REFUSED


def _compared(actual: Any, expected: Any) -> str:
    """Return how an answer differs from the expected one; nothing if it does not."""
    if isinstance(expected, Random):
        return _compared_draws(actual, expected)
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return f"{_said(actual)}, not {_said(expected)}"
        for key in {**expected, **actual}:
            if problem := _compared(actual.get(key), expected.get(key)):
                return f"{key}: {problem}"
        return ""
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        return _compared(dict(enumerate(actual)), dict(enumerate(expected)))
    if isinstance(expected, Tensor) or isinstance(actual, Tensor):
        return _compared_tensors(actual, expected)
    return "" if actual == expected else f"{_said(actual)}, not {_said(expected)}"


def _compared_tensors(actual: Any, expected: Any) -> str:
    # No gradient is a gradient of zeros.
    if actual is None and isinstance(expected, Tensor):
        actual = torch.zeros_like(expected)
    if expected is None and isinstance(actual, Tensor):
        expected = torch.zeros_like(actual)
    if not isinstance(actual, Tensor) or not isinstance(expected, Tensor):
        return f"{_said(actual)}, not {_said(expected)}"
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{_said(actual)}, not {_said(expected)}"
    if actual.is_meta or expected.is_meta:
        return "" if actual.is_meta == expected.is_meta else "another device"
    relative, absolute = COARSE.get(expected.dtype, (0.06, 0.06))
    a, b = actual.detach().double(), expected.detach().double()
    # A few digits are lost to the largest number that enters a sum.
    size = b.abs() if expected.dtype in COARSE else b.abs().nan_to_num(0, 0, 0).amax()
    close = ((a - b).abs() <= absolute + relative * size) | (a == b) | (a.isnan() & b.isnan())
    if close.all():
        return ""
    place = tuple((~close).nonzero()[0].tolist())
    return f"{a[place]:.6g}, not {b[place]:.6g}, at {place} of {_said(expected)}"


def _said(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor {tuple(value.shape)}"
    return repr(value)[:80]


def _compared_draws(actual: Any, expected: Random) -> str:
    """Compare what one seed gives, and means and products of many draws if that differs."""
    if not isinstance(actual, Random):
        return f"{_said(actual)}, not a tensor"
    first = []
    for answer in (actual, expected):
        torch.manual_seed(0)
        first.append(_answer(answer.draw))
    if not _compared(*first):
        return ""
    if not all(isinstance(each, Tensor) for each in first) or first[0].shape != first[1].shape:
        return f"in training {_said(first[0])}, not {_said(first[1])}"
    if first[0].dtype != first[1].dtype:
        return f"in training {_said(first[0])}, not {_said(first[1])}"
    means, errors = zip(_moments(actual), _moments(expected))
    apart = (means[0] - means[1]).abs()
    allowed = LIMIT * (errors[0] ** 2 + errors[1] ** 2).sqrt() + 1e-6 + 1e-4 * means[1].abs()
    return "" if (apart <= allowed).all() else "in training other means over many draws"


def _moments(answer: Random) -> tuple[Tensor, Tensor]:
    """Return means of the numbers, of being 0 and of products of two, with standard errors."""
    drawn = torch.stack(
        [answer.draw().detach().double().flatten()[:24] for _ in range(RANDOM_DRAWS)]
    )  # (draws, numbers)
    centred = drawn - drawn.mean(0)
    products = (centred[:, :, None] * centred[:, None, :]).flatten(1)  # (draws, numbers²)
    all_of_them = torch.cat([drawn, (drawn == 0).double(), products], dim=1)
    return all_of_them.mean(0), all_of_them.std(0) / RANDOM_DRAWS**0.5
