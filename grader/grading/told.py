"""The form of a case's answer: enough numbers to show a mistake, and none if nothing is known."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

MANY = 12  # numbers that show a mistake: more than chance gives, and more than naming needs


def often(*values: Any) -> list[Any]:
    """Return values as often as naming needs, because one number alone shows no mistake.

    Example::

        @check.case(about="layers")
        def has_bias(student, rng):
            \"\"\"Whether the query layer has a bias.\"\"\"
            attention = student.CausalAttention(3, 4, 6, 0.0, True)
            return often("W_query.bias" in dict(attention.named_parameters()))
    """
    return [*values] * MANY


def known(said: Tensor, outputs: Tensor) -> Tensor:
    """Return numbers about outputs, or nan if one is not finite, because then they show nothing."""
    return (
        said if outputs.isfinite().all() else torch.full_like(said, torch.nan, dtype=torch.double)
    )
