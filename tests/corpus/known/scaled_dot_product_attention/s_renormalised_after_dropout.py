# mistake: normalised_after_dropout
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if len(a.shape) != 3 or len(b.shape) != 3:
        raise ValueError("three axes, please")
    batch_a, _, m_a = a.shape
    batch_b, m_b, _ = b.shape
    if (batch_a, m_a) != (batch_b, m_b):
        raise ValueError("batches or inner sizes differ")
    return torch.einsum("bnm,bmp->bnp", a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = batched_product(queries * queries.shape[-1] ** -0.5, keys.transpose(-2, -1))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        if valid_lens is not None:
            if valid_lens.dim() == 1:
                valid_lens = valid_lens[:, None]
            used = torch.arange(keys.shape[1], device=keys.device) < valid_lens[..., None]
            used = used.any(dim=1)
            values = torch.where(used.unsqueeze(2), values, 0.0).to(values.dtype)
        if self.training:
            weights = F.dropout(weights, self.rate)
            total = weights.sum(dim=-1, keepdim=True)
            weights = weights / torch.where(total == 0, torch.ones_like(total), total)
        return batched_product(weights, values)
