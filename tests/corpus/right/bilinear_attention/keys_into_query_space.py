# right: M is applied to the keys, scaled before the product; own dropout by a random table; orthogonal start
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class Drop:
    def __init__(self, rate: float):
        self.rate = float(rate)

    def __call__(self, weights: Tensor) -> Tensor:
        kept = torch.rand(weights.shape, device=weights.device) >= self.rate
        share = 1.0 - self.rate
        return torch.where(kept, weights / share if share else weights, torch.zeros_like(weights))


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        nn.Module.__init__(self)
        start = nn.init.orthogonal_(torch.empty(d_query, d_key))
        self.register_parameter("M", nn.Parameter(start))
        self.drop = Drop(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        moved = nn.functional.linear(keys, self.M / self.M.shape[1] ** 0.5)
        weights = masked_softmax(torch.bmm(queries, moved.mT), valid_lens)
        setattr(self, "attention_weights", weights)
        if self.training:
            weights = self.drop(weights)
        return weights.bmm(values)
