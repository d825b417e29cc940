# right: einsum with explicit checks, padded values replaced by torch.where, F.dropout, detached weights
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    fits = a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1]
    if not fits:
        raise ValueError(f"no product of {tuple(a.shape)} and {tuple(b.shape)}")
    return torch.einsum("inm,imp->inp", a, b)


class DotProductAttention(nn.Module):
    attention_weights: Tensor | None

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = float(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = batched_product(queries, keys.mT) * queries.shape[-1] ** -0.5
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        if valid_lens is not None:
            longest = valid_lens.to(values.device).reshape(len(values), -1).amax(dim=1)
            place = torch.arange(values.shape[1], device=values.device)
            used = (place < longest.unsqueeze(1)).unsqueeze(2)
            values = torch.where(used, values, torch.zeros_like(values))
        return batched_product(F.dropout(weights, self.rate, self.training), values)
