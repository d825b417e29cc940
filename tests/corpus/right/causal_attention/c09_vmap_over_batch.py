import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = dropout
        t = torch.arange(context_length)
        self.register_buffer("is_future", t[None] > t[:, None])

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.is_future.shape[0]:
            raise ValueError("too long for this module")
        hide = self.is_future[:n, :n]

        def sentence_weights(q, k):
            return torch.softmax((q @ k.T / q.shape[1] ** 0.5).masked_fill(hide, -torch.inf), dim=1)

        w = torch.vmap(sentence_weights)(self.W_query(x), self.W_key(x))
        return F.dropout(w, self.dropout, self.training) @ self.W_value(x)
