# note: each layer is a tiny module that only owns a `weight` parameter, and all products are einsums
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class Weight(nn.Module):
    """Something that has a .weight and nothing else."""

    def __init__(self, rows: int, cols: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, cols).uniform_(-1, 1) * cols**-0.5)


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = Weight(num_hiddens, d_query)
        self.W_k = Weight(num_hiddens, d_key)
        self.w_v = Weight(1, num_hiddens)
        self.p = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        hq = torch.einsum("bqd,hd->bqh", queries, self.W_q.weight)
        hk = torch.einsum("bkd,hd->bkh", keys, self.W_k.weight)
        hidden = torch.tanh(hq[:, :, None, :] + hk[:, None, :, :])
        e = torch.einsum("bqkh,oh->bqk", hidden, self.w_v.weight)
        a = masked_softmax(e, valid_lens)
        self.attention_weights = a.detach()
        a = nn.functional.dropout(a, self.p, self.training)
        return torch.einsum("bqk,bkv->bqv", a, values)
