# mistake: kept_after_dropout
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    fits = a.ndim == b.ndim == 3 and a.size(0) == b.size(0) and a.size(-1) == b.size(-2)
    if not fits:
        raise ValueError("shapes do not fit")
    return a @ b


def _hide_padding(values: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Zero the values that no query of the item may see (0 * nan would be nan)."""
    if valid_lens is None:
        return values
    n_keys = values.size(1)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    seen = (torch.arange(n_keys, device=values.device) < lens.unsqueeze(-1)).any(dim=1)
    return torch.where(seen.unsqueeze(-1), values, torch.zeros_like(values))


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.p = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scale = queries.size(-1) ** -0.5
        scores = batched_product(queries * scale, keys.mT)
        w = masked_softmax(scores, valid_lens)
        w = F.dropout(w, self.p, training=self.training)
        self.attention_weights = w
        return batched_product(w, _hide_padding(values, valid_lens))
