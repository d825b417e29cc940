# mistake: dropout_on_the_output
# dropout is applied to the output and not to the weights
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    match tuple(a.shape), tuple(b.shape):
        case (batch, _, m), (other, k, _) if batch == other and m == k:
            return torch.matmul(a, b)
        case shapes:
            raise ValueError(f"shapes {shapes}")


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        root = queries.shape[2] ** 0.5
        weights = masked_softmax(batched_product(queries, keys.permute(0, 2, 1)) / root, valid_lens)
        self.attention_weights = weights
        if valid_lens is not None:
            limit = valid_lens.reshape(valid_lens.shape[0], -1).max(dim=1).values
            idx = torch.arange(values.shape[1], device=values.device)
            values = values.masked_fill((idx[None, :] >= limit[:, None])[..., None], 0)
        return self.drop(batched_product(weights, values))
