# right: einsum for all products, the queries scaled first, refusal by unpacking shapes, weights detached for looking
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    try:
        batch, n, m = a.shape
        batch_b, m_b, p = b.shape
    except ValueError:
        raise ValueError("a and b must have 3 axes") from None
    if (batch, m) != (batch_b, m_b):
        raise ValueError(f"{a.shape} x {b.shape}")
    return torch.einsum("bnm,bmp->bnp", a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = dropout
        self.attention_weights: Tensor | None = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        small = queries / math.sqrt(queries.shape[-1])
        weights = masked_softmax(torch.einsum("bqd,bkd->bqk", small, keys), valid_lens)
        self.attention_weights = weights.detach()
        if valid_lens is not None:
            ranks = torch.arange(1, keys.shape[1] + 1, device=keys.device)
            lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
            pad = (ranks > lens[:, :, None]).all(dim=1)
            values = values.masked_fill(pad.unsqueeze(-1), 0)
        kept = F.dropout(weights, self.rate, self.training)
        return torch.einsum("bqk,bkv->bqv", kept, values)
