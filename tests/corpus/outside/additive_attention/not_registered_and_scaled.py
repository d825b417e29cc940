# mistake: W_q, W_k and w_v sit in a dictionary behind properties, so they are no parameters of the module, and the scores are divided by sqrt(d_key)
import math

import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    """Additive attention with its layers kept together."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.layers = {
            "W_q": nn.Linear(d_query, num_hiddens, bias=False),
            "W_k": nn.Linear(d_key, num_hiddens, bias=False),
            "w_v": nn.Linear(num_hiddens, 1, bias=False),
        }
        self.dropout = nn.Dropout(dropout)

    @property
    def W_q(self):
        return self.layers["W_q"]

    @property
    def W_k(self):
        return self.layers["W_k"]

    @property
    def w_v(self):
        return self.layers["w_v"]

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        pairs = self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1)
        scores = self.w_v(torch.tanh(pairs)).squeeze(-1) / math.sqrt(keys.shape[-1])
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
