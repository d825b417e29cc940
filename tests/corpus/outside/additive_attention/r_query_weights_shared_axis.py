# mistake: not in the catalogue: all queries share one hidden sum: the projected queries are averaged over the queries before the keys are added, so all queries get the same scores
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Bahdanau attention: translated from a Keras layer with one decoder state per step."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        state = self.W_q(queries).mean(dim=1, keepdim=True)           # (batch, 1, hidden)
        energy = self.w_v(torch.tanh(state + self.W_k(keys)))         # (batch, n_keys, 1)
        energy = energy.transpose(1, 2).expand(-1, queries.size(1), -1)
        w = masked_softmax(energy, valid_lens)
        self.attention_weights = w
        return self.drop(w) @ values
