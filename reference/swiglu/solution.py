"""Reference solution: a feed-forward network with a gate."""

import torch.nn.functional as F
from torch import Tensor, nn


class SwiGLU(nn.Module):
    """Two layers side by side, of which one gates the other, and one that leads back."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        # --- solution
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        # --- solution
        gate = F.silu(self.W_gate(x))  # (..., d_ff)
        hidden = gate * self.W_up(x)  # (..., d_ff)
        hidden = self.dropout(hidden)  # (..., d_ff)
        output = self.W_down(hidden)  # (..., d_model)
        return output
        # --- end


def hidden_size(d_model: int, multiple: int = 256) -> int:
    """Return 8 * d_model // 3, rounded up to a multiple; raises ValueError for one below 1."""
    # --- solution
    if multiple < 1:
        raise ValueError(f"sizes cannot be multiples of {multiple}")
    size = 8 * d_model // 3
    return (size + multiple - 1) // multiple * multiple
    # --- end
