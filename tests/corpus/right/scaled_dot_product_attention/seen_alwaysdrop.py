# right: the twin of one with a mistake, alwaysdrop
# seen: coleygroup/ms-pred issue 38 (also torchtune issue 1791). Mistake: the functional dropout is not told whether the module trains, so it also drops in eval mode. (Fixed in this twin.)
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if len(a.shape) != 3 or len(b.shape) != 3:
        raise ValueError("a and b must be batches of matrices")
    if len(a) != len(b):
        raise ValueError("sizes of the batches differ")
    if a.shape[2] != b.shape[1]:
        raise ValueError("matrices do not fit")
    return torch.baddbmm(a.new_zeros(()), a, b, beta=0)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout_p = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        n_keys, d_key = keys.shape[1:]
        scores = batched_product(queries, keys.permute(0, 2, 1)) / d_key**0.5
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        if valid_lens is not None:
            most = valid_lens if valid_lens.dim() == 1 else valid_lens.max(dim=1)[0]
            used = torch.arange(n_keys, device=most.device).expand(len(most), -1) < most[:, None]
            used = used.to(values.device)[..., None]
            values = torch.where(used, values, values.new_zeros(()))
        weights = F.dropout(weights, p=self.dropout_p, training=self.training)
        return batched_product(weights, values)
