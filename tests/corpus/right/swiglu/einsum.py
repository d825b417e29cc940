# right
import torch
from torch import nn


def hidden_size(d_model, multiple=256):
    if multiple < 1:
        raise ValueError("multiple must be at least 1")
    raw = 8 * d_model // 3
    return -(-raw // multiple) * multiple


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        z = torch.einsum("...d,fd->...f", x, self.W_gate.weight)
        u = torch.einsum("...d,fd->...f", x, self.W_up.weight)
        h = torch.einsum("...f,...f,...f->...f", z, torch.sigmoid(z), u)
        return torch.einsum("...f,df->...d", self.dropout(h), self.W_down.weight)
