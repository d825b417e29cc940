"""Tells whether gradients are the slopes of a program's output, for any output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from grader.grading.compare import describe, expect, in_float64
from grader.grading.rng import Rng
from grader.sandbox.host.proxies import Remote, Student, code_of

STEP = 1e-3
ROUGH = 0.01  # of a slope: the most that its two sides may differ where it is measured
NO_SLOPE = 1e-3  # the largest slope that counts as no dependence
TOLERANCE = 0.005  # of a slope's norm
DIRECTIONS = 16  # steps, of which the one that shows every slope best is taken
MOST = 100  # times the expected numbers: a larger output is not examined


def assert_slopes(
    student: Student,
    code: Any,
    like: Any,
    inputs: Mapping[str, Any],
    *,
    rng: Rng,
    step: float = STEP,
) -> None:
    """Raise `Mismatch` unless gradients are the slopes of the output of the student's code.

    `code` is a function or a module, whose parameters count too, in both modes; each call drops
    the same values. `inputs` are by name, in order. `like` is the reference's code, with the same
    parameters. If the outputs are equal, gradients equal to its gradients are right. Other
    gradients have to predict how the output changes when an input, or the parameters of a layer,
    move by `step`.

    Example::

        def test_slopes(student, reference, rng):
            \"\"\"Gradients reach x and gamma.\"\"\"
            theirs, ours = twins(student.Norm, reference.Norm, 7, rng=rng)
            assert_slopes(student, theirs, ours, {"x": rng.randn(2, 5, 7)}, rng=rng)
    """
    theirs = _Program(code, inputs, code_of(student).manual_seed)
    ours = _Program(like, inputs, torch.default_generator.manual_seed)
    for training in (False, True) if theirs.is_module else (False,):
        for program in (theirs, ours):
            program.run(training=training)
        for name in theirs.frozen & ours.values().keys():
            expect(False, f"no gradient reaches {name}: its requires_grad is False")
        output, right = theirs.output, ours.output
        too_large = f"the output has shape {tuple(output.shape)}, far larger than asked"
        expect(output.numel() <= MOST * right.numel(), too_large)
        if output.shape == right.shape:
            upstream = rng.randn(*right.shape)
            agree = torch.allclose(output.double(), right.double(), rtol=1e-6, atol=1e-5)
            if agree and _agree(theirs.gradients(upstream), ours.gradients(upstream)):
                continue
        _assert_slopes(theirs, rng, step, training=training)


def assert_slopes_in_training(student: Student, module: Any, *inputs: Any, rng: Rng) -> None:
    """Raise `Mismatch` unless a module's gradients in training are the slopes of its output.

    Each call drops the same values. An output that is not finite is left to other checks.
    """
    named = {f"argument {number}": value for number, value in enumerate(inputs, start=1)}
    program = _Program(module, named, code_of(student).manual_seed)
    program.run(training=True)
    if program.output.isfinite().all():
        _assert_slopes(program, rng, STEP, training=True)


def _agree(actual: dict[str, Tensor | None], expected: dict[str, Tensor | None]) -> bool:
    """Return whether gradients are the expected ones."""
    return actual.keys() == expected.keys() and all(
        _are_close(actual[name], gradient) for name, gradient in expected.items()
    )


def _are_close(actual: Tensor | None, expected: Tensor | None) -> bool:
    if actual is None or expected is None:
        return actual is expected
    same_shape = actual.shape == expected.shape
    return same_shape and torch.allclose(actual.double(), expected.double(), rtol=1e-4, atol=1e-5)


def _assert_slopes(program: _Program, rng: Rng, step: float, *, training: bool) -> None:
    """Raise `Mismatch` unless the gradients of a program are the slopes of its output."""
    directions = {name: rng.randn(*value.shape) for name, value in program.values().items()}
    slopes, now = {}, in_float64(program.output.detach())
    known, roughness = now.isfinite(), torch.zeros_like(now)
    for group in dict.fromkeys(map(_group, directions)):
        moves = {name: step * d for name, d in directions.items() if _group(name) == group}
        ends = [program.moved({n: sign * m for n, m in moves.items()}) for sign in (1, -1)]
        same_shape = all(end.shape == known.shape for end in ends)
        expect(same_shape, "the output has another shape for other numbers")
        slope = (ends[0] - ends[1]) / (2 * step)
        known &= slope.isfinite()
        sides = (ends[0] - now + ends[1] - now).abs() / step
        size = slope.where(known, 0.0).square().mean().sqrt()
        roughness = torch.maximum(roughness, sides / size.clamp(min=NO_SLOPE))
        slopes[group] = slope
    # Other checks find an output that is not finite; here only the gradients must be finite.
    expect(known.any(), "the output is not finite")
    # At a kink, such as that of an absolute value, there is no slope to compare with.
    known &= roughness <= roughness[known].median().clamp(min=ROUGH)
    slopes = {group: slope.where(known, 0.0) for group, slope in slopes.items()}
    slopes = {group: slope for group, slope in slopes.items() if slope.abs().max() >= NO_SLOPE}
    upstreams = [rng.randn(*known.shape).where(known, 0.0) for _ in range(DIRECTIONS)]
    upstream = max(
        upstreams,
        key=lambda each: min((_along(s, each) / s.norm() for s in slopes.values()), default=0),
    )
    program.run(training=training)  # computed again, because the parameters have moved since
    gradients = program.gradients(upstream)
    for group, slope in slopes.items():
        found = {name: g for name, g in gradients.items() if _group(name) == group}
        reached = {name: g.double() for name, g in found.items() if g is not None}
        expect(reached, f"no gradient reaches {group}")
        finite = all(gradient.isfinite().all() for gradient in reached.values())
        expect(finite, f"the gradient of {group} is not finite")
        predicted = sum((g * directions[name]).sum() for name, g in reached.items())
        difference = predicted - (slope * upstream).sum()
        says = f"the gradient of {group} is not the slope of the output"
        expect(difference.abs() < TOLERANCE * slope.norm(), says)


def _group(name: str) -> str:
    """Return the name of a parameter's layer, or of an input itself."""
    return name.partition(".")[0]


def _along(slope: Tensor, upstream: Tensor) -> float:
    return float((slope * upstream).sum().abs())


class _Program:
    """A function or module with the values of its inputs and parameters."""

    def __init__(self, code: Any, inputs: Mapping[str, Any], seed: Callable[[int], Any]) -> None:
        self.is_module = isinstance(code, Remote | nn.Module)
        self._code, self._inputs, self._seed = code, inputs, seed
        self._moving = {
            name: value.detach()
            for name, value in inputs.items()
            if isinstance(value, Tensor) and value.is_floating_point()
        }
        self._leaves: dict[str, Tensor] = {}
        self.output = torch.empty(0)

    def values(self) -> dict[str, Tensor]:
        """Return the values on which the output may depend: float inputs and parameters."""
        return {**self._moving, **self._parameters()}

    @property
    def frozen(self) -> set[str]:
        """The names of parameters that get no gradient."""
        found = self._code.named_parameters() if self.is_module else ()
        return {name for name, value in found if not value.requires_grad}

    def _parameters(self) -> dict[str, Tensor]:
        found = self._code.named_parameters() if self.is_module else ()
        return {name: value.detach().clone() for name, value in found if value.requires_grad}

    def run(self, *, training: bool) -> None:
        """Compute the output with its graph, in a module's mode `training`."""
        if self.is_module:
            self._code.train(training)
        self._leaves = {n: v.clone().requires_grad_() for n, v in self._moving.items()}
        self.output = self._call(self._leaves)
        expect(isinstance(self.output, Tensor), f"the output is {describe(self.output)}")
        cut = "no gradient can flow back from the output: its graph was cut"
        expect(self.output.requires_grad, cut)

    def _call(self, moving: Mapping[str, Tensor]) -> Any:
        self._seed(1)  # so that each call drops the same values
        return self._code(*({**self._inputs, **moving}.values()))

    def gradients(self, upstream: Tensor) -> dict[str, Tensor | None]:
        """Return the gradients of the output's sum, weighted by `upstream`, by name."""
        if self.is_module:
            self._code.zero_grad()
        for leaf in self._leaves.values():
            leaf.grad = None
        total = (self.output.double() * upstream).sum()
        total.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        found = dict(self._code.named_parameters()) if self.is_module else {}
        return {name: each.grad for name, each in {**self._leaves, **found}.items()}

    def moved(self, moves: Mapping[str, Tensor]) -> Tensor:
        """Return the output after the values of `moves` are added to those of the same name."""
        with torch.no_grad():
            moving = {n: v + moves[n] if n in moves else v for n, v in self._moving.items()}
            if moves.keys() <= moving.keys():
                return in_float64(self._call(moving))
            before = {n: v for n, v in self._parameters().items() if n in moves}
            there = {name: value + moves[name] for name, value in before.items()}
            self._code.load_state_dict(there, strict=False)
            output = in_float64(self._call(moving))
            self._code.load_state_dict(before, strict=False)
            return output
