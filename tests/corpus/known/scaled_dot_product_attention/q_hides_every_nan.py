# mistake: nan_hidden
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim == 3 and b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1]:
        return torch.bmm(a, b)
    raise ValueError("batched_product: shapes")


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = torch.as_tensor(keys.size(-1), dtype=keys.dtype, device=keys.device)
        scores = batched_product(queries, keys.mT) * torch.rsqrt(d_key)
        self.attention_weights = masked_softmax(scores, valid_lens)
        clean = torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
        return batched_product(self.dropout(self.attention_weights), clean)
