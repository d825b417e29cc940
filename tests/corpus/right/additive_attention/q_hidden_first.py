import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Keeps the hidden units on the first axis: (num_hiddens, batch, n_queries, n_keys)."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        sizes = {"W_q": (d_query, num_hiddens), "W_k": (d_key, num_hiddens), "w_v": (num_hiddens, 1)}
        for name, (n_in, n_out) in sizes.items():
            self.add_module(name, nn.Linear(n_in, n_out, bias=False))
        self.rate = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q = torch.einsum("hd,bqd->hbq", self.W_q.weight, queries)[..., :, None]
        k = torch.einsum("hd,bkd->hbk", self.W_k.weight, keys)[..., None, :]
        scores = torch.tensordot(self.w_v.weight[0], (q + k).tanh(), dims=1)
        self.attention_weights = masked_softmax(scores, valid_lens)
        dropped = nn.functional.dropout(self.attention_weights, self.rate, self.training)
        return torch.einsum("bqk,bkv->bqv", dropped, values)
