# mistake: matrix_reshaped
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.d_query, self.d_key = d_query, d_key
        self.M = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_query, d_key)))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        Mk = keys @ self.M.reshape(self.d_key, self.d_query)
        similarity = torch.einsum("bqd,bkd->bqk", queries, Mk).div(self.d_key**0.5)
        probs = masked_softmax(similarity, valid_lens)
        self.attention_weights = probs
        return torch.einsum("bqk,bkd->bqd", self.dropout(probs), values)
