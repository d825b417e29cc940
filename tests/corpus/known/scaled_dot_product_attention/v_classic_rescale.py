# mistake: dropout_not_inverted
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    match (a.shape, b.shape):
        case ((n1, _, m1), (n2, m2, _)) if n1 == n2 and m1 == m2:
            return a.matmul(b)
    raise ValueError("cannot multiply these")


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = queries.shape[2]
        scores = batched_product(queries, keys.mT).div(d_key**0.5)
        self.attention_weights = weights = masked_softmax(scores, valid_lens)
        if self.training:
            keep = torch.rand(weights.shape, device=weights.device) >= self.rate
            weights = weights * keep
        else:
            weights = weights * (1 - self.rate)
        if valid_lens is not None:
            lens = valid_lens if valid_lens.ndim == 1 else valid_lens.amax(-1)
            dead = torch.arange(keys.shape[1], device=keys.device) >= lens.unsqueeze(-1)
            values = values.masked_fill(dead.unsqueeze(-1), 0)
        return batched_product(weights, values)
