# mistake: scaled_tokens
# the tokens are multiplied by the root of d_model before the encoding is added
import math

import torch
from torch import Tensor, nn


def sinusoidal(context_length, d_model, base=10000.0):
    columns = torch.arange(d_model)
    rates = base ** (-(columns // 2 * 2).float() / d_model)
    angles = torch.arange(context_length).float().unsqueeze(1) * rates
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model = d_model
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        _, n_tokens, _ = x.shape
        if n_tokens > self.pos.shape[0]:
            raise ValueError("n_tokens > context_length")
        # make the embeddings relatively larger
        x = x * math.sqrt(self.d_model)
        return self.dropout(x + self.pos[:n_tokens])


def permutation_gap(block, x, permutation):
    gap = block(x[:, permutation]) - block(x)[:, permutation]
    return float(gap.abs().max())
