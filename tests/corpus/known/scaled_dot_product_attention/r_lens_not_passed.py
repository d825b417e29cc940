# mistake: padded_values_alone_blanked
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    ok = a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[-1] == b.shape[-2]
    if not ok:
        raise ValueError("shapes do not fit")
    return torch.matmul(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(p=dropout)
        self.attention_weights: Tensor | None = None

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        n_keys = keys.shape[1]
        energy = batched_product(queries, keys.permute(0, 2, 1)) / queries.size(-1) ** 0.5
        if valid_lens is not None:
            if valid_lens.shape not in (queries.shape[:1], queries.shape[:2]) or (valid_lens > n_keys).any():
                raise ValueError("valid_lens")
            longest = valid_lens.reshape(len(keys), -1).max(dim=1, keepdim=True).values
            real = torch.arange(n_keys, device=keys.device) < longest
            values = torch.where(real.unsqueeze(2), values, 0.0)
        self.attention_weights = masked_softmax(energy, None)
        return batched_product(self.drop(self.attention_weights), values)
