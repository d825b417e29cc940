# mistake: cut_to_the_shortest_length
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if [a.dim(), b.dim()] != [3, 3]:
        raise ValueError("not three axes")
    if a.shape[0] != b.shape[0] or a.shape[-1] != b.shape[-2]:
        raise ValueError("shape mismatch")
    return a @ b


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        scores = batched_product(queries, keys.mT) / (keys.shape[-1] ** 0.5)
        self.attention_weights = masked_softmax(scores, valid_lens)
        if valid_lens is not None:
            cut = valid_lens.view(-1, 1) if valid_lens.dim() == 1 else valid_lens.amin(dim=1, keepdim=True)
            inside = torch.arange(values.shape[1], device=values.device)[None] < cut
            values = values.masked_fill(~inside[..., None], 0)
        return batched_product(self.dropout(self.attention_weights), values)
