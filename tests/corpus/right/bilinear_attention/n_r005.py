# style: unusual
import torch
from torch import Tensor, nn
from masked_softmax import masked_softmax


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        weight = torch.empty(d_query, d_key)
        nn.init.xavier_uniform_(weight)
        self.M = nn.Parameter(weight)
        self.rate = dropout

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        # q^T M k for all pairs at once; baddbmm with beta=0 lets me put the scale into alpha
        projected = torch.matmul(queries, self.M)
        base = projected.new_zeros(1, 1, 1)
        scores = torch.baddbmm(base, projected, keys.mT, beta=0, alpha=self.M.size(1) ** -0.5)
        self.attention_weights = masked_softmax(scores, valid_lens)
        dropped = nn.functional.dropout(self.attention_weights, self.rate, self.training)
        return torch.bmm(dropped, values)
