# note: baddbmm with alpha for the scale, float32 or wider inside, padded values cleaned by torch.where
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    problem = None
    if a.dim() != 3 or b.dim() != 3:
        problem = "both need three axes"
    elif a.size(0) != b.size(0):
        problem = "batches differ"
    elif a.size(2) != b.size(1):
        problem = "inner axes differ"
    if problem:
        raise ValueError(problem)
    return torch.einsum("bij,bjk->bik", a, b)


class DotProductAttention(nn.Module):
    attention_weights: Tensor

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        dtype = values.dtype
        inner = torch.float64 if dtype == torch.float64 else torch.float32
        q, k, v = queries.to(inner), keys.to(inner), values.to(inner)
        (b, n_q, d), n_k = q.shape, k.shape[1]
        scores = torch.baddbmm(q.new_zeros(b, n_q, n_k), q, k.transpose(1, 2), beta=0, alpha=d**-0.5)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.to(dtype)
        if valid_lens is not None:
            longest = valid_lens.reshape(b, -1).amax(1)
            real = torch.arange(n_k, device=v.device).expand(b, n_k) < longest.unsqueeze(1)
            v = torch.where(real.unsqueeze(2), v, v.new_zeros(()))
        return batched_product(F.dropout(weights, p=self.dropout, training=self.training), v).to(dtype)
