# right
import torch
from torch import nn


def hidden_size(d_model: int, multiple: int = 256) -> int:
    if multiple < 1:
        raise ValueError(f"multiple is {multiple}, but it has to be 1 or more")
    size = 8 * d_model // 3
    while size % multiple != 0:
        size += 1
    return size


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        for name, shape in {"W_gate": (d_model, d_ff), "W_up": (d_model, d_ff), "W_down": (d_ff, d_model)}.items():
            self.add_module(name, nn.Linear(*shape, bias=False))
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x):
        both = torch.cat([self.W_up.weight, self.W_gate.weight], dim=0)
        up, gate = (x @ both.T).chunk(2, dim=-1)
        up = up * nn.functional.silu(gate)
        return self.drop(up) @ self.W_down.weight.mT
