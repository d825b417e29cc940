# mistake: valid_lens of shape (batch, n_queries) is reduced to the largest length of each item
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        no_bias = dict(bias=False)
        self.W_q = nn.Linear(d_query, num_hiddens, **no_bias)
        self.W_k = nn.Linear(d_key, num_hiddens, **no_bias)
        self.w_v = nn.Linear(num_hiddens, 1, **no_bias)
        self.rate = dropout

    def _score(self, queries: Tensor, keys: Tensor) -> Tensor:
        hidden = self.W_q(queries)[:, :, None, :] + self.W_k(keys)[:, None, :, :]
        return self.w_v(hidden.tanh())[..., 0]

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        if valid_lens is not None and valid_lens.dim() == 2:
            valid_lens = valid_lens.max(dim=1).values
        w = masked_softmax(self._score(queries, keys), valid_lens)
        self.attention_weights = w
        w = F.dropout(w, p=self.rate, training=self.training)
        return w @ values
