# mistake: angles_in_half_precision
# seen: wfondrie/depthcharge pull 82 (also modelscope/DiffSynth-Studio pull 1025). Mistake: positions and frequencies are cast with the module, so after .to(bfloat16) the angles are computed in bfloat16 and far positions collide.
from collections.abc import Callable

import torch
from torch import Tensor, nn


def _frequencies(d_model: int, base: float = 10000.0) -> Tensor:
    i = torch.arange((d_model + 1) // 2, dtype=torch.float64)
    return base ** (-2.0 * i / d_model)


def _waves(positions: Tensor, frequencies: Tensor, d_model: int) -> Tensor:
    angle = positions[:, None] * frequencies
    waves = angle.new_empty(positions.shape[0], d_model)
    waves[:, 0::2] = angle.sin()
    waves[:, 1::2] = angle[:, : d_model // 2].cos()
    return waves


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    positions = torch.arange(context_length, dtype=torch.float64)
    return _waves(positions, _frequencies(d_model, base), d_model).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model = d_model
        self.context_length = context_length
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("frequencies", _frequencies(d_model).float(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError("too many tokens")
        positions = torch.arange(n_tokens, device=x.device).to(self.frequencies.dtype)
        encoding = _waves(positions, self.frequencies, self.d_model)
        return self.dropout(x + encoding)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    a = block(x[:, permutation, :])
    b = block(x)[:, permutation, :]
    return (a - b).abs().flatten().max()
