# mistake: whole_tokens_dropped
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    p = torch.arange(context_length, dtype=torch.float64)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    turns = torch.polar(
        torch.ones(context_length, len(two_i), dtype=torch.float64),
        p.unsqueeze(1) / base ** (two_i / d_model),
    )
    pairs = torch.view_as_real(turns).flip(-1)
    return pairs.flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.rate = dropout
        self.register_buffer("rows", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        if n > self.rows.shape[0]:
            raise ValueError("too long")
        total = x + self.rows[:n]
        if not self.training:
            return total
        keep = 1 - self.rate
        alive = torch.rand(x.shape[0], n, 1, device=x.device) < keep
        return torch.where(alive, total / (keep or 1.0), torch.zeros_like(total))


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    gap = block(x[:, permutation]) - block(x)[:, permutation]
    return gap.abs().max()
