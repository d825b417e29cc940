import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.empty(d_query, d_key))
        nn.init.xavier_uniform_(self.M)
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        # F.linear(keys, M) is keys M^T: the keys in the space of the queries
        mapped = F.linear(keys, self.M)
        logits = torch.bmm(queries, mapped.transpose(1, 2)) / self.M.shape[1] ** 0.5
        self.attention_weights = masked_softmax(logits, valid_lens)
        kept = F.dropout(self.attention_weights, self.rate, self.training)
        return torch.bmm(kept, values)
