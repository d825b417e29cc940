# promise: A length with a fraction is cut to a whole number, so that 2.5 means two keys, not three.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key) * d_query**-0.5)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        lens = None if valid_lens is None else valid_lens.to(torch.int64)
        scores = torch.einsum("bqi,ij->bqj", queries, self.M)
        scores = torch.einsum("bqj,bkj->bqk", scores, keys) / self.M.shape[1] ** 0.5
        self.attention_weights = masked_softmax(scores, lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
