# right: products by broadcasting and sums, tensordot for M
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key).mul_(d_query**-0.5))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        pulled = torch.tensordot(keys, self.M, dims=([2], [1]))  # M k for each key
        products = queries.unsqueeze(2).mul(pulled.unsqueeze(1)).sum(-1)
        self.attention_weights = masked_softmax(products / self.M.size(1) ** 0.5, valid_lens)
        kept = self.dropout(self.attention_weights)
        return kept.unsqueeze(-1).mul(values.unsqueeze(1)).sum(2)
