# mistake: tanh_of_each_part
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

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q = self.W_q(queries)
        k = self.W_k(keys)
        hidden = torch.tanh(q).unsqueeze(2) + torch.tanh(k).unsqueeze(1)
        scores = self.w_v(hidden).squeeze(-1)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
