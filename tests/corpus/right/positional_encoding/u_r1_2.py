# right: points on circles from torch.polar, sine and cosine taken by view_as_real, in float64
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    n_pairs = (d_model + 1) // 2
    position = torch.arange(context_length, dtype=torch.float64)
    exponent = torch.arange(n_pairs, dtype=torch.float64) * 2 / d_model
    angle = position.unsqueeze(1) / torch.pow(float(base), exponent)
    circle = torch.view_as_real(torch.polar(torch.ones_like(angle), angle))
    return circle.flip(-1).reshape(context_length, 2 * n_pairs)[:, :d_model].float().contiguous()


class PositionalEncoding(nn.Module):
    encoding: Tensor

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.rate = dropout
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        longest, n = self.encoding.size(0), x.size(-2)
        if n > longest:
            raise ValueError(f"{n} tokens are more than {longest}")
        return F.dropout(torch.add(x, self.encoding.narrow(0, 0, n)), self.rate, self.training)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    of_permuted = block(x.index_select(1, permutation))
    permuted = block(x).index_select(1, permutation)
    return torch.sub(of_permuted, permuted).abs().amax()
