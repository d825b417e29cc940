# mistake: not in the catalogue: the gate is z times a softmax over the hidden units
import torch
from torch import nn


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        z = self.W_gate(x)
        return self.W_down(self.dropout(z * torch.softmax(z, dim=-1) * self.W_up(x)))


def hidden_size(d_model, multiple=256):
    if multiple < 1:
        raise ValueError("multiple must be positive")
    size = 8 * d_model // 3
    return size if size % multiple == 0 else size + multiple - size % multiple
