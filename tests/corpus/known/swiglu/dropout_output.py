# mistake: dropout_on_the_output
# dropout on the output, after W_down
import torch
from torch import nn
from torch.nn import functional as F


def hidden_size(d_model, multiple=256):
    if multiple < 1:
        raise ValueError("multiple must be positive")
    return multiple * ((8 * d_model // 3 + multiple - 1) // multiple)


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        h = F.silu(self.W_gate(x)) * self.W_up(x)
        return self.dropout(self.W_down(h))
