# mistake: shapes_not_checked
# batched_product leaves the check to matmul, which repeats a batch of size 1 and accepts tensors with two axes
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"inner sizes {a.shape[-1]} and {b.shape[-2]} differ")
    return a @ b


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.p = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = batched_product(queries, keys.mT) * queries.size(-1) ** -0.5
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        if valid_lens is not None:
            per_query = valid_lens.reshape(len(keys), -1)
            position = torch.arange(keys.size(1), device=keys.device)
            seen = (position < per_query.unsqueeze(-1)).any(1)
            values = torch.where(seen.unsqueeze(-1), values, torch.zeros_like(values))
        return batched_product(F.dropout(weights, self.p, self.training), values)
