"""Reference solution: blending rows. CANARY-REFERENCE-5d1c"""

import torch
from torch import Tensor, nn


def blend(scores: Tensor, values: Tensor) -> Tensor:
    """scores (n, m), values (m, d) -> the weighted averages (n, d)."""
    # --- solution
    weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)  # (n, m)
    weights = weights / weights.sum(dim=-1, keepdim=True)  # (n, m)
    return weights @ values  # (n, d)
    # --- end


class Blend(nn.Module):
    """Blends with scores from a learned matrix."""

    def __init__(self, size: int) -> None:
        super().__init__()
        # --- solution
        self.weight = nn.Parameter(torch.eye(size))  # (size, size)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """x (n, size) -> (n, size)."""
        # --- solution
        return blend(x @ self.weight @ x.T, x)  # (n, size)
        # --- end
