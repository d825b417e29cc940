"""Trains a student's model once for all tests that ask for it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from grader.errors import CheckFailure, Mismatch, StudentFailure
from grader.grading.compare import describe
from grader.grading.seeds import seed_of_worker
from grader.report import Reached
from grader.sandbox.host.proxies import Student, StudentCode, code_of
from grader.sandbox.host.training import Losses, Trained

SEVERAL = 20  # reports; with more, the first and the last tenth are compared
RISEN = 1.5  # the last loss may be at most this many times the first


@dataclass(frozen=True)
class TrainingRun:
    """A trained module of the student's, and the losses that were reported on the way."""

    module: Any
    losses: Losses
    reached: dict[str, Reached] = field(default_factory=dict)  # found by tests so far


def trained(
    student: Student,
    name: str,
    make: Callable[[], Any],
    train: Callable[[Any, Any], Any],
) -> TrainingRun:
    """Train a module of the student's, once for all tests that ask for the training `name`.

    `make` returns the module, and `train(module, report)` has the student's code train it in
    place; `report` is passed on, as a function that the code may call with a step and a loss. The
    module of the result is a new one with the trained parameters, in evaluation mode, so nothing
    else that the training left behind plays a part. Raises `Mismatch` if training changed no
    parameter, or left numbers that are not finite. The limits are those of `[training]` in
    `exercise.toml`.

    Example::

        def test_learns(student):
            \"\"\"Training lowers the loss.\"\"\"
            make = lambda: student.Norm(3)
            run = trained(student, "norm", make, lambda m, report: student.fit(m, 20, report))
            expect(run.losses[-1][1] < run.losses[0][1], "the loss does not fall")
    """
    code = code_of(student)
    if name in code.trainings.failed:
        raise code.trainings.failed[name]
    if name not in code.trainings.done:
        try:
            code.trainings.done[name] = _train(code, name, make, train)
        except CheckFailure as failure:
            code.trainings.failed[name] = failure
            raise
        code.trainings.keep()
    # Later draws give the same numbers, whether the model was trained just now or before.
    code.manual_seed(seed_of_worker(code.trainings.seed, "trained", name))
    reached = code.trainings.reached.setdefault(name, {})
    return TrainingRun(restored(student, name, make), code.trainings.done[name].losses, reached)


def assert_reaches(
    run: TrainingRun,
    what: str,
    value: float,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> None:
    """Raise `Mismatch` if a value that a trained model reaches is not within the limit.

    The report shows the value beside the losses, and `make margins` the distance of the references
    from the limit.

    Example::

        def test_reaches(student):
            \"\"\"The factors come close to 3.\"\"\"
            make = lambda: student.Norm(3)
            run = trained(student, "norm", make, lambda m, report: student.fit(m, 20, report))
            far = (run.module.gamma - 3).abs().max().item()
            assert_reaches(run, "the distance from 3", far, at_most=2.0)
    """
    limit, is_least = (at_most, False) if at_least is None else (at_least, True)
    assert limit is not None, "assert_reaches needs at_least or at_most"
    found = Reached(what, value if math.isfinite(value) else -math.inf, limit, is_least)
    if not math.isfinite(value) or (value < limit if is_least else value > limit):
        raise Mismatch(f"after training, {found.says}")
    run.reached[what] = found


def restored(student: Student, name: str, make: Callable[[], Any]) -> Any:
    """Return a new module with the parameters of a finished training, or None."""
    done = code_of(student).trainings.done.get(name)
    if done is None:
        return None
    module = make()
    module.load_state_dict(dict(done.state))
    return module.eval()


def _train(
    code: StudentCode, name: str, make: Callable[[], Any], train: Callable[[Any, Any], Any]
) -> Trained:
    code.manual_seed(seed_of_worker(code.trainings.seed, "training", name))
    module = make()
    before = _state(module)
    with code.training(name) as (report, log):
        try:
            train(module, report)
        except StudentFailure as failure:
            if failure.kind == "Timeout" and log.last_words not in failure.message:
                failure.message += log.last_words
            raise
    state = _state(module)
    _refuse_without_sense(before, state, log.losses)
    return Trained(state, log.losses)


def _state(module: Any) -> dict[str, Tensor]:
    """Return copies of a module's parameters and buffers. Raises `Mismatch` if it has none."""
    state = module.state_dict()
    if isinstance(state, dict) and state and all(isinstance(v, Tensor) for v in state.values()):
        return {name: value.detach().clone() for name, value in state.items()}
    raise Mismatch(f"there is nothing to train: state_dict() is {describe(state)}")


def _refuse_without_sense(
    before: dict[str, Tensor], after: dict[str, Tensor], losses: Losses
) -> None:
    """Raise `Mismatch` for a training that diverged, or that has not happened."""
    broken = next((step for step, loss in losses if not math.isfinite(loss)), None)
    if broken is not None:
        raise Mismatch(f"the training diverged: the loss of step {broken} is not finite")
    # A buffer may hold infinities from the beginning, as a mask does.
    finite = [name for name, value in before.items() if value.isfinite().all() and name in after]
    if broken_name := next((name for name in finite if not after[name].isfinite().all()), ""):
        raise Mismatch(f"the training diverged: {broken_name} holds numbers that are not finite")
    if before.keys() != after.keys() or any(
        after[name].shape != value.shape for name, value in before.items()
    ):
        raise Mismatch("the training changed which parameters there are, or their shapes")
    if all(torch.equal(after[name], value) for name, value in before.items()):
        raise Mismatch("the training changed no parameter")
    if len(losses) >= SEVERAL:
        tenth = max(1, len(losses) // 10)
        first, last = (
            sum(loss for _, loss in part) / tenth
            for part in (itertools.islice(losses, tenth), losses[-tenth:])
        )
        if last > max(first, RISEN * first):
            raise Mismatch(f"the training diverged: the loss rose from {first:.3g} to {last:.3g}")
