# note: products as broadcast sums, dropout by hand, and the kept weights are a read-only property over a list
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if not (a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1]):
        raise ValueError(f"no product of {list(a.shape)} and {list(b.shape)}")
    wide = torch.promote_types(a.dtype, torch.float32)
    return (a.to(wide)[:, :, :, None] * b.to(wide)[:, None, :, :]).sum(2).to(a.dtype)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = float(dropout)
        self._seen: list[Tensor] = []

    @property
    def attention_weights(self) -> Tensor | None:
        return self._seen[-1] if self._seen else None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(
            batched_product(queries.mul(queries.shape[-1] ** -0.5), keys.mT), valid_lens
        )
        self._seen = [weights.detach().clone()]
        if self.training and self.rate > 0:
            kept = torch.rand(weights.shape, device=weights.device) >= self.rate
            mixed = weights * kept / (1 - self.rate) if self.rate < 1 else weights * 0.0
        else:
            mixed = weights
        if valid_lens is not None:
            lens = valid_lens if valid_lens.ndim == 2 else valid_lens[:, None]
            idx = torch.arange(keys.shape[1], device=keys.device)
            padded = (idx >= lens[..., None]).all(1)
            values = values.masked_fill(padded[..., None], 0.0)
        return batched_product(mixed, values)
