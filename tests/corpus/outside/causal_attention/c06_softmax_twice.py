# mistake: applies softmax to the masked scores and then once more to the weights
# true: future tokens get positive weights and all weights are nearly even
import torch
from torch import Tensor, nn
import torch.nn.functional as F


def attention_weights(q, k, mask):
    s = q @ k.transpose(1, 2) / (k.size(-1) ** 0.5)
    s = s.masked_fill(mask, float("-inf"))
    return F.softmax(s, dim=2)


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.p = dropout
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), 1))

    def forward(self, x: Tensor) -> Tensor:
        t = x.size(1)
        if t > self.mask.size(1):
            raise ValueError
        w = attention_weights(self.W_query(x), self.W_key(x), self.mask[:t, :t])
        w = torch.softmax(w, dim=-1)
        w = F.dropout(w, self.p, training=self.training)
        return w @ self.W_value(x)
