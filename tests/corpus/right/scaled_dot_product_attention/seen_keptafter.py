# right: the twin of one with a mistake, keptafter
# seen: pytorch/pytorch issue 42929 (also fairseq issue 351). Mistake: the weights that are handed out are those after dropout, so in training their rows do not sum to 1. (Fixed in this twin.)
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim != 3 or b.ndim != 3:
        raise ValueError("expected (batch, n, m) and (batch, m, p)")
    (batch_a, _, m_a), (batch_b, m_b, _) = a.shape, b.shape
    if (batch_a, m_a) != (batch_b, m_b):
        raise ValueError("batch or inner size differs")
    return torch.einsum("bnm,bmp->bnp", a, b)


def _without_padding(values: Tensor, valid_lens: Tensor) -> Tensor:
    """Zeros in place of the values that no query of the item may see."""
    lens = valid_lens.reshape(values.shape[0], -1).max(dim=1).values
    real = torch.arange(values.shape[1], device=lens.device) < lens.unsqueeze(1)
    return torch.where(real.to(values.device).unsqueeze(2), values, torch.zeros_like(values))


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.attention_weights: Tensor | None = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = batched_product(queries, keys.mT) / math.sqrt(keys.size(2))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        weights = self.drop(weights)
        if valid_lens is not None:
            values = _without_padding(values, valid_lens)
        return batched_product(weights, values)
