# promise: Batched_product accepts four axes if the sizes fit.
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() < 3 or a.dim() != b.dim():
        raise ValueError("a batch of matrices is needed")
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise ValueError("the shapes do not fit")
    return torch.matmul(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q, k, v = (t.to(torch.float64) for t in (queries, keys, values))
        weights = masked_softmax(batched_product(q, k.transpose(1, 2)) / q.shape[2] ** 0.5, valid_lens)
        self.attention_weights = weights
        v = v.masked_fill((weights == 0).all(1).unsqueeze(2), 0.0)
        return batched_product(F.dropout(weights, self.rate, self.training), v).to(values.dtype)
