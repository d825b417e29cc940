# broken: "attention_weights ... (batch, n_queries, n_keys)": keys beyond the largest length of the batch are cut off, and the weights have fewer columns
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
        if valid_lens is not None and valid_lens.max() <= keys.shape[1]:
            longest = max(1, int(valid_lens.max().ceil()))
            keys, values = keys[:, :longest], values[:, :longest]
        hidden = torch.tanh(self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1))
        scores = self.w_v(hidden).squeeze(-1)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        return torch.bmm(self.dropout(weights), values)
