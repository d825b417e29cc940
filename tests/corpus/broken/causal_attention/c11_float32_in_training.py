# promise: if the module and x have the same dtype, the output has it too, for example bfloat16 (own dropout mask in float32, so training in bfloat16 fails)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.rate = dropout
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), 1))

    def _dropout(self, w):
        if not self.training or self.rate == 0:
            return w
        if self.rate == 1:
            return w * 0
        keep = (torch.rand(w.shape, device=w.device) >= self.rate).float()
        return w * keep / (1 - self.rate)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("n_tokens")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        w = torch.softmax((q @ k.mT / q.size(-1) ** 0.5).masked_fill(self.mask[:n, :n], -torch.inf), -1)
        return self._dropout(w).matmul(v)
