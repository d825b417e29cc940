# right: einsum over a broadcast sum, functional dropout, weights kept detached
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.rate = float(dropout)
        for name, n_in, n_out in (
            ("W_q", d_query, num_hiddens),
            ("W_k", d_key, num_hiddens),
            ("w_v", num_hiddens, 1),
        ):
            self.add_module(name, nn.Linear(n_in, n_out, bias=False))
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q = torch.einsum("bqd,hd->bqh", queries, self.W_q.weight)
        k = torch.einsum("bkd,hd->bkh", keys, self.W_k.weight)
        hidden = torch.tanh(q.unsqueeze(2) + k.unsqueeze(1))
        scores = torch.einsum("bqkh,h->bqk", hidden, self.w_v.weight.reshape(-1))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        kept = F.dropout(weights, p=self.rate, training=self.training)
        return torch.einsum("bqk,bkv->bqv", kept, values)
