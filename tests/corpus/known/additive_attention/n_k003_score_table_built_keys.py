# mistake: axes_exchanged
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
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        bs, nq, _ = queries.size()
        nk = keys.size(1)
        q = self.W_q(queries).unsqueeze(1)
        k = self.W_k(keys).unsqueeze(2)
        energy = self.w_v(torch.tanh(q + k))
        energy = energy.reshape(bs, nq, nk)
        alpha = masked_softmax(energy, valid_lens)
        self.attention_weights = alpha
        return torch.bmm(self.dropout(alpha), values)
