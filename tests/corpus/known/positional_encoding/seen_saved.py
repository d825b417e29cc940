# mistake: saved
# seen: espnet/espnet pull 1060 (also fairseq pull 5213). Mistake: the encoding is an ordinary buffer, so it is saved in the state_dict and another context_length cannot load it.
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    n_pairs = (d_model + 1) // 2
    step = -2.0 * math.log(base) / d_model
    speed = torch.exp(torch.arange(n_pairs, dtype=torch.float64) * step)
    angle = torch.outer(torch.arange(context_length, dtype=torch.float64), speed)
    pairs = torch.stack((angle.sin(), angle.cos()), dim=-1)
    return pairs.flatten(1)[:, :d_model].to(torch.float32).contiguous()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-2]
        if length > len(self.pe):
            raise ValueError(f"{length} tokens do not fit into a context of {len(self.pe)}")
        return self.dropout(x + self.pe[:length])


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    difference = block(x)[:, permutation] - block(x[:, permutation])
    return difference.abs().max()
