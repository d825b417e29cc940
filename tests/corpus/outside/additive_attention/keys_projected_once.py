# mistake: the projected keys are remembered as long as the shape of the keys stays, so other keys of that shape are ignored
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
        self._projected = None

    def _score(self, queries: Tensor, keys: Tensor) -> Tensor:
        # the keys are the same in every decoding step, no need to project them again
        if self._projected is None or self._projected[0] != keys.shape:
            self._projected = keys.shape, self.W_k(keys)
        hidden = self.W_q(queries)[:, :, None, :] + self._projected[1][:, None, :, :]
        return self.w_v(hidden.tanh())[..., 0]

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        w = masked_softmax(self._score(queries, keys), valid_lens)
        self.attention_weights = w
        w = F.dropout(w, p=self.rate, training=self.training)
        return w @ values
