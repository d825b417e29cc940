# right: the twin of one with a mistake, inverse
# seen: esceptico/perceiver-io issue 9. Mistake: the scores are divided by d_key ** -0.5, which makes them larger in place of smaller. (Fixed in this twin.)
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both tensors need three axes")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError(f"{tuple(a.shape)} and {tuple(b.shape)} do not fit")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scale = queries.shape[-1] ** -0.5
        scores = batched_product(queries, keys.transpose(1, 2)) * scale
        self.attention_weights = masked_softmax(scores, valid_lens)
        if valid_lens is not None:
            longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
            place = torch.arange(values.shape[1], device=values.device)
            padding = place[None, :] >= longest.to(values.device)[:, None]
            values = values.masked_fill(padding[:, :, None], 0.0)
        return batched_product(self.dropout(self.attention_weights), values)
