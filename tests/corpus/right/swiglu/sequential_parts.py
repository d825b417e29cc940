# right
import torch
from torch import nn
from torch.nn import functional as F


def hidden_size(d_model, multiple=256):
    if not multiple >= 1:
        raise ValueError("not a multiple")
    quotient, rest = divmod(8 * d_model // 3, multiple)
    return (quotient + (rest > 0)) * multiple


class Swish(nn.Module):
    def forward(self, x):
        return x.sigmoid().mul(x)


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.activation = Swish()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        lead = x.shape[:-1]
        flat = x.reshape(-1, x.shape[-1])
        gate = self.activation(F.linear(flat, self.W_gate.weight))
        up = F.linear(flat, self.W_up.weight)
        hidden = self.dropout(gate * up)
        return F.linear(hidden, self.W_down.weight).reshape(*lead, -1)
