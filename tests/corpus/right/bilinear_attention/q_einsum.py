import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key) / d_query**0.5)
        self.dropout = nn.Dropout(dropout)
        self.attention_weights: Tensor | None = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = torch.einsum("bid,de,bje->bij", queries, self.M, keys) * self.M.shape[1] ** -0.5
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.einsum("bij,bjv->biv", self.dropout(self.attention_weights), values)
