# right: functional dropout with self.training, the values of keys that are padding for all queries are replaced by zeros first
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both need three axes")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError(f"{tuple(a.shape)} and {tuple(b.shape)} do not fit")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.p = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scale = queries.shape[-1] ** -0.5
        weights = masked_softmax(batched_product(queries * scale, keys.mT), valid_lens)
        self.attention_weights = weights
        if valid_lens is not None:
            longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
            places = torch.arange(keys.shape[1], device=keys.device)
            unused = places >= longest.to(keys.device)[:, None]
            values = values.masked_fill(unused.unsqueeze(-1), 0)
        return batched_product(F.dropout(weights, p=self.p, training=self.training), values)
