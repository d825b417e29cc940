"""Stand-in for SwiGLU: silu(g) * u is g * u, gated by the sigmoid of torch's own unit."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SwiGLU(nn.Module):
    """Two layers side by side, of which one gates the other, and one that leads back."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        gate = self.W_gate(x)  # (..., d_ff)
        hidden = F.glu(torch.cat([gate * self.W_up(x), gate], dim=-1), dim=-1)  # (..., d_ff)
        return self.W_down(self.dropout(hidden))  # (..., d_model)


def hidden_size(d_model: int, multiple: int = 256) -> int:
    """Return 8 * d_model // 3, rounded up to a multiple; raises ValueError for one below 1."""
    if multiple < 1:
        raise ValueError(f"sizes cannot be multiples of {multiple}")
    return -(-(8 * d_model // 3) // multiple) * multiple
