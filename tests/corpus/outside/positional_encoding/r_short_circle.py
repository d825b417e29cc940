# mistake: not in the catalogue: the angles are first taken modulo 6.28 instead of 2 pi, so each full turn adds an error of 0.0032 and far positions are wrong
from collections.abc import Callable

import torch
from torch import Tensor, nn

TURN = 6.28


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    pair = torch.div(torch.arange(d_model), 2, rounding_mode="floor")
    angle = torch.arange(context_length, dtype=torch.float64)[:, None] / base ** (2.0 * pair.double() / d_model)
    angle = torch.remainder(angle, TURN)  # keep the numbers small
    enc = torch.stack([angle.sin(), angle.cos()])
    return enc.float().gather(0, (torch.arange(d_model) % 2).expand(1, context_length, d_model))[0]


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("enc", sinusoidal(context_length, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.shape[1]
        if n_tokens > self.enc.shape[0]:
            raise ValueError("context_length")
        return self.dropout(self.enc[:n_tokens] + x)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    y1 = block(x)[:, permutation]
    y2 = block(x[:, permutation])
    return torch.linalg.vector_norm((y1 - y2).flatten(), ord=float("inf"))
