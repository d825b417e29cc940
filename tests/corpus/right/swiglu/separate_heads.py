# right
import math
import torch
from torch import nn
import torch.nn.functional as F


def hidden_size(d_model, multiple=256):
    if multiple < 1:
        raise ValueError(multiple)
    size = (8 * d_model) // 3
    if size % multiple:
        size += multiple - size % multiple
    return size


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.p = dropout

    def gate(self, x):
        return F.silu(self.W_gate(x))

    def value(self, x):
        return self.W_up(x)

    def forward(self, x):
        hidden = self.gate(x) * self.value(x)
        hidden = F.dropout(hidden, self.p, self.training)
        return self.W_down(hidden)
