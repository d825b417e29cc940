"""How what two implementations give is compared."""

from __future__ import annotations

from typing import Any

import torch
from reference_cases import Function, Leaves
from torch import Tensor

from grader.testing import Rng


def assert_close(actual: Tensor, expected: Tensor, what: str, **tolerance: float) -> None:
    tolerance = tolerance or {"rtol": 1e-9, "atol": 1e-10}
    torch.testing.assert_close(actual, expected, **tolerance, msg=lambda text: f"{what}: {text}")


def assert_same(actual: Function, expected: Function, leaves: Leaves, **tolerance: float) -> None:
    """Both give the same output, and the same gradient for every leaf."""
    outputs = actual(leaves), expected(leaves)
    assert_close(*outputs, "the output", **tolerance)
    upstream = Rng(0).randn(*outputs[1].shape)
    gradients = [torch.autograd.grad(o, list(leaves.values()), upstream) for o in outputs]
    for name, found, wanted in zip(leaves, *gradients):
        assert_close(found, wanted, f"the gradient of {name}", **tolerance)


def assert_rounds_to(actual: Tensor, expected: Any, what: str) -> None:
    """The same to four decimals."""
    assert_close(actual.double(), torch.tensor(expected).double(), what, rtol=0, atol=6e-5)
