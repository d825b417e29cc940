# mistake: zero_scores_masked
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.context_length = context_length
        self.scale = d_out**-0.5
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError("too many tokens")
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)
        scores = queries @ keys.transpose(1, 2) * self.scale
        # tril leaves zeros above the diagonal
        scores = torch.tril(scores)
        scores = scores.masked_fill(scores == 0, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        return self.dropout(weights) @ values
