"""Reference solution: scaling."""

import torch
from torch import Tensor, nn


def scale(x: Tensor, factor: float) -> Tensor:
    """Return x times factor. Raises ValueError for a negative factor."""
    # --- solution
    if factor < 0:
        raise ValueError("a negative factor")
    return x * factor  # same shape as x
    # --- end


class Scale(nn.Module):
    """Multiply by a learned weight, (size,): one number per feature."""

    def __init__(self, size: int) -> None:
        super().__init__()
        # --- solution
        self.weight = nn.Parameter(torch.ones(size))  # (size,)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Return x times the weight."""
        # --- solution
        return x * self.weight  # same shape as x
        # --- end
