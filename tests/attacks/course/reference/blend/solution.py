"""Reference solution: blending rows. CANARY-REFERENCE-5d1c"""

import torch
from torch import Tensor, nn


def blend(scores: Tensor, values: Tensor) -> Tensor:
    """Return the averages (n, d) of values (m, d), weighted by the softmax of scores (n, m)."""
    # --- solution
    weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)  # (n, m)
    weights = weights / weights.sum(dim=-1, keepdim=True)  # (n, m)
    return weights @ values  # (n, d)
    # --- end


class Blend(nn.Module):
    """Blend rows with scores from a learned matrix."""

    def __init__(self, size: int) -> None:
        super().__init__()
        # --- solution
        self.weight = nn.Parameter(torch.eye(size))  # (size, size)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, size) to the same shape."""
        # --- solution
        return blend(x @ self.weight @ x.T, x)  # (n, size)
        # --- end
