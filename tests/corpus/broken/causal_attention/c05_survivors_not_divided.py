# promise: the remaining weights are divided by 1 - dropout (own dropout without the division)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.p = dropout
        order = torch.arange(context_length)
        self.register_buffer("later", order[None, :] > order[:, None])

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > len(self.later):
            raise ValueError("n")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        w = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(self.later[:n, :n], -torch.inf).softmax(-1)
        if self.training:
            w = w.masked_fill(torch.rand_like(w, dtype=torch.float32) < self.p, 0.0)
        return w @ v
