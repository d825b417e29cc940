# right: the twin of one with a mistake, nanpadding
# seen: pytorch/pytorch issue 101967. Mistake: padded values are multiplied by a weight of 0, and 0 times nan makes the output nan. (Fixed in this twin.)
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    fits = a.dim() == b.dim() == 3 and a.size(0) == b.size(0) and a.size(-1) == b.size(-2)
    if not fits:
        raise ValueError(f"no batched product of {list(a.shape)} and {list(b.shape)}")
    return a.matmul(b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = queries.size(-1)
        scores = batched_product(queries, keys.transpose(-2, -1)).div(d_key**0.5)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        dropped = nn.functional.dropout(weights, p=self.rate, training=self.training)
        if valid_lens is not None:
            per_query = valid_lens if valid_lens.dim() == 2 else valid_lens.unsqueeze(1)
            key = torch.arange(keys.size(1), device=valid_lens.device)
            seen = (key < per_query.unsqueeze(-1)).any(dim=1).to(values.device)
            values = values.masked_fill(seen.logical_not().unsqueeze(-1), 0)
        return batched_product(dropped, values)
