# mistake: multiplied
import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    p = torch.arange(context_length, dtype=torch.float64)
    i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = p[:, None] / torch.pow(torch.tensor(base, dtype=torch.float64), i / d_model)
    both = torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1)
    return both.flatten(1)[:, :d_model].to(torch.float32)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.shape[1]
        if n_tokens > self.encoding.shape[0]:
            raise ValueError("x is too long")
        return self.dropout(x * self.encoding[:n_tokens])


def permutation_gap(block, x, permutation):
    permuted = block(x[:, permutation])
    return (permuted - block(x)[:, permutation]).abs().max()
