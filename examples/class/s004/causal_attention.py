import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.drop = nn.Dropout(p=dropout)
        i = torch.arange(context_length)
        self.register_buffer("allowed", i[:, None] >= i[None, :])

    def forward(self, x):
        _, T, _ = x.shape
        if T > self.allowed.shape[0]:
            raise ValueError("x is longer than context_length")
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)
        S = torch.einsum("bid,bjd->bij", Q, K) * Q.shape[-1] ** -0.5
        S = torch.where(self.allowed[:T, :T], S, -torch.inf)
        A = self.drop(S.softmax(-1))
        return torch.einsum("bij,bjd->bid", A, V)
