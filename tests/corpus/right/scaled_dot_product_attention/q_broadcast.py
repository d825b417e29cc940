import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class Dropper:
    """Inverted dropout, as in a course on plain numpy."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, t: Tensor) -> Tensor:
        if self.rate >= 1:
            return torch.zeros_like(t)
        keep = torch.rand(t.shape, device=t.device).ge(self.rate)
        return t * keep / (1 - self.rate)


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    shapes = (*a.shape, None, *b.shape)
    match shapes:
        case (b1, _, m1, None, b2, m2, _) if b1 == b2 and m1 == m2:
            pass
        case _:
            raise ValueError("need (batch, n, m) and (batch, m, p)")
    wide = torch.promote_types(a.dtype, torch.float32)
    left, right = a.to(wide).unsqueeze(3), b.to(wide).unsqueeze(1)
    return (left * right).sum(dim=2).to(a.dtype)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.drop = Dropper(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        root = keys.shape[-1] ** 0.25
        scores = batched_product(queries / root, (keys / root).permute(0, 2, 1))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach().clone()
        if valid_lens is not None:
            longest = valid_lens if valid_lens.ndim == 1 else valid_lens.amax(dim=1)
            real = torch.arange(values.shape[1], device=values.device) < longest[:, None]
            values = torch.where(real[:, :, None], values, torch.zeros_like(values))
        return batched_product(self.drop(weights) if self.training else weights, values)
