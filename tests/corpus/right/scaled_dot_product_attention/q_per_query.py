import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if not (a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1]):
        raise ValueError(f"cannot multiply {tuple(a.shape)} and {tuple(b.shape)}")
    return torch.einsum("bnm,bmp->bnp", a, b)


class DotProductAttention(nn.Module):
    """Each query looks only at the values of its own valid keys, in a table of four axes."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = dropout
        self.attention_weights: Tensor | None = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = batched_product(queries * queries.shape[-1] ** -0.5, keys.mT)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        n_keys = keys.shape[1]
        if valid_lens is None:
            valid = torch.ones(1, 1, n_keys, dtype=torch.bool, device=keys.device)
        else:
            limits = valid_lens.reshape(len(valid_lens), -1, 1)
            valid = torch.arange(n_keys, device=keys.device) < limits
        seen = torch.where(valid.unsqueeze(-1), values.unsqueeze(1), 0.0)
        dropped = F.dropout(weights, self.rate, self.training)
        return torch.einsum("bqk,bqkv->bqv", dropped, seen.expand(-1, queries.shape[1], -1, -1))
