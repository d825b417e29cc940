# mistake: not in the catalogue: both branches go through W_down, and the product comes after it
import torch
import torch.nn.functional as F
from torch import nn


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        opened = self.W_down(self.drop(F.silu(self.W_gate(x))))
        return opened * self.W_down(self.drop(self.W_up(x)))


def hidden_size(d_model, multiple=256):
    if multiple < 1:
        raise ValueError(multiple)
    return -(-(8 * d_model // 3) // multiple) * multiple
