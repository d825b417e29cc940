# mistake: not in the catalogue: The hidden layer is gated: tanh(h) is multiplied by sigmoid(h) before w_v, as in gated attention pooling.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Attention whose scores are w_v . tanh(W_q q + W_k k)."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def _pair_scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        h = self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1)
        gate = torch.sigmoid(h)
        return self.w_v(torch.tanh(h) * gate).squeeze(-1)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = self._pair_scores(queries, keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
