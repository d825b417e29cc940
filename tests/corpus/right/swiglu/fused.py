# right: One product with both weights stacked, cut in two by chunk, and z * sigmoid(z) by hand.
import torch
from torch import Tensor, nn


class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        for name, rows, columns in (("W_gate", d_model, d_ff), ("W_up", d_model, d_ff), ("W_down", d_ff, d_model)):
            self.add_module(name, nn.Linear(rows, columns, bias=False))
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        both = x @ torch.cat([self.W_gate.weight, self.W_up.weight]).T
        z, up = both.chunk(2, dim=-1)
        gate = z * torch.sigmoid(z)
        hidden = nn.functional.dropout(gate * up, self.rate, self.training)
        return hidden @ self.W_down.weight.T


def hidden_size(d_model: int, multiple: int = 256) -> int:
    if multiple <= 0:
        raise ValueError(f"multiple is {multiple}, but has to be at least 1")
    return -(-(8 * d_model // 3) // multiple) * multiple
