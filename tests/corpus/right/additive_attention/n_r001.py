# style: unusual
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    """Bahdanau-style attention, the scores are computed with one einsum."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        make = lambda n_in, n_out: nn.Linear(n_in, n_out, bias=False)
        self.W_q = make(d_query, num_hiddens)
        self.W_k = make(d_key, num_hiddens)
        self.w_v = make(num_hiddens, 1)
        self.p_drop = dropout
        self.attention_weights = None

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        left = torch.einsum("bqd,hd->bqh", q, self.W_q.weight)
        right = torch.einsum("bkd,hd->bkh", k, self.W_k.weight)
        # (b, q, 1, h) + (b, 1, k, h)  -> outer sum
        features = (left[:, :, None] + right[:, None]).tanh()
        return torch.einsum("bqkh,h->bqk", features, self.w_v.weight[0])

    def forward(self, queries, keys, values, valid_lens=None):
        w = masked_softmax(self.scores(queries, keys), valid_lens)
        self.attention_weights = w
        w = F.dropout(w, p=self.p_drop, training=self.training)
        return torch.einsum("bqk,bkv->bqv", w, values)
