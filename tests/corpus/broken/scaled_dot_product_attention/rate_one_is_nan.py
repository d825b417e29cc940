# broken: "dropout is the rate, from 0 to 1": at rate 1 the output in training is nan, not zeros.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both tensors must have three axes")
    if a.shape[0] != b.shape[0] or a.shape[-1] != b.shape[-2]:
        raise ValueError("the shapes do not fit")
    return a @ b


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        root = queries.shape[-1] ** 0.5
        scores = batched_product(queries / root, keys.transpose(1, 2))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach().clone()
        if valid_lens is not None:
            longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
            padded = torch.arange(keys.shape[1], device=keys.device) >= longest[:, None]
            values = values.masked_fill(padded[:, :, None], 0.0)
        if self.training and self.rate > 0:
            kept = torch.rand(weights.shape, device=weights.device) >= self.rate
            weights = weights * kept / (1 - self.rate)
        return batched_product(weights, values)
