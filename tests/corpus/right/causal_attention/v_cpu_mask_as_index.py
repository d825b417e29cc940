# style: CPU index tensors (triu_indices) and assignment to scores[:, i, j]
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features ** 0.5
        # indices on the CPU may index a tensor anywhere
        row, column = torch.triu_indices(n, n, offset=1)
        scores[:, row, column] = float("-inf")
        weights = scores.softmax(dim=2)
        return self.dropout(weights) @ self.W_value(x)
