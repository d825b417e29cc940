# mistake: tanh_of_the_score
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        def no_bias(n_in, n_out):
            return nn.Linear(n_in, n_out, bias=False)
        self.W_q = no_bias(d_query, num_hiddens)
        self.W_k = no_bias(d_key, num_hiddens)
        self.w_v = no_bias(num_hiddens, 1)
        self.drop = nn.Dropout(dropout)

    def score(self, queries: Tensor, keys: Tensor) -> Tensor:
        hidden = self.W_q(queries)[:, :, None, :] + self.W_k(keys)[:, None, :, :]
        return self.w_v(hidden).tanh()[..., 0]

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(self.score(queries, keys), valid_lens)
        self.attention_weights = weights.detach()
        return self.drop(weights) @ values
