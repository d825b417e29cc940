# right: a buffer that is not persistent, dropout by hand in float32 with self.training, the sines are made in float64 first
import torch
from collections.abc import Callable

from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    position = torch.arange(context_length, dtype=torch.float64).unsqueeze(1)
    pair = torch.arange(d_model) // 2
    angle = position / base ** (2 * pair.double() / d_model)
    odd = torch.arange(d_model) % 2 == 1
    return torch.where(odd, angle.cos(), angle.sin()).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal(context_length, d_model), persistent=False)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > len(self.table):
            raise ValueError(f"{n} tokens, {len(self.table)} positions")
        y = x + self.table[:n]
        if self.training and self.rate > 0:
            alive = torch.rand(y.shape, device=y.device) >= self.rate
            y = y * alive
            if self.rate < 1:
                y = y / (1 - self.rate)
        return y


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    return torch.max(torch.abs(block(x[:, permutation]) - block(x)[:, permutation]))
