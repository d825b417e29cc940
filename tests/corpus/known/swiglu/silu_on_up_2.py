# mistake: silu_on_up
# silu is applied to W_up's numbers instead of W_gate's.
import torch.nn.functional as F
from torch import nn


class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.W_down(self.drop(self.W_gate(x) * F.silu(self.W_up(x))))


def hidden_size(d_model: int, multiple: int = 256) -> int:
    if multiple < 1:
        raise ValueError("multiple must be positive")
    hidden_dim = 4 * d_model
    hidden_dim = int(2 * hidden_dim / 3)
    return multiple * ((hidden_dim + multiple - 1) // multiple)
