# promise: With a fractional length such as 2.5 the value of the last valid key is treated as padding.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() != 3 or b.dim() != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError("a must be (batch, n, m), b (batch, m, p)")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        wide = torch.promote_types(queries.dtype, torch.float32)
        q, k, v = queries.to(wide), keys.to(wide), values.to(wide)
        scores = batched_product(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        if valid_lens is not None:
            lens = valid_lens.long().reshape(v.shape[0], -1).amax(dim=1)
            padded = torch.arange(v.shape[1], device=v.device) >= lens[:, None]
            v = v.masked_fill(padded[:, :, None], 0.0)
        return batched_product(self.dropout(weights), v).to(values.dtype)
