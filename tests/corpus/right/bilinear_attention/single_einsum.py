# right: one einsum for the scores and one for the output, own dropout with bernoulli
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def drop(weights: Tensor, rate: float) -> Tensor:
    if rate == 1:
        return weights * 0
    kept = torch.bernoulli(torch.full(weights.shape, 1.0 - rate, device=weights.device))
    return weights * kept.to(weights.dtype) / (1 - rate)


class BilinearAttention(nn.Module):
    """Everything by einsum."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key))
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = torch.einsum("bqi,ij,bkj->bqk", queries, self.M * keys.size(-1) ** -0.5, keys)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach().clone()
        if self.training:
            weights = drop(weights, self.rate)
        return torch.einsum("bqk,bkv->bqv", weights, values)
