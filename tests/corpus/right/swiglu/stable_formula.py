# right
import math
import torch
from torch import nn


def hidden_size(d_model, multiple=256):
    assert multiple >= 1, "multiple < 1"
    return multiple * math.ceil((8 * d_model // 3) / multiple)


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.dropout = nn.Dropout(dropout)

    @staticmethod
    def swish(z):
        # sigmoid(z) = (1 + tanh(z/2)) / 2
        return z * 0.5 * (1 + torch.tanh(0.5 * z))

    def forward(self, x):
        h = self.W_up(x) * self.swish(self.W_gate(x))
        return self.W_down(self.dropout(h))
