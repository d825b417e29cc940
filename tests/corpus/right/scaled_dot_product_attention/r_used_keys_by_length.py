import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    match (tuple(a.shape), tuple(b.shape)):
        case ((n1, _, m1), (n2, m2, _)) if n1 == n2 and m1 == m2:
            return torch.einsum("bnm,bmp->bnp", a, b)
        case (left, right):
            raise ValueError(f"cannot multiply {left} and {right}")


def _without_padding(values: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Values of keys that no query of their item may see are replaced by 0 (0 * nan would be nan)."""
    if valid_lens is None:
        return values
    longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
    place = torch.arange(values.shape[1], device=values.device)
    padded = place[None, :] >= longest[:, None]
    return values.masked_fill(padded[:, :, None], 0)


class DotProductAttention(nn.Module):
    attention_weights: Tensor | None = None

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scale = queries.shape[-1] ** -0.5
        scores = batched_product(queries * scale, keys.transpose(1, 2))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        return batched_product(self.dropout(weights), _without_padding(values, valid_lens))
