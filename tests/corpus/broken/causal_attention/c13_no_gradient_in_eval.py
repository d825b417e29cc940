# promise: gradients reach x and all parameters (only in training: eval mode switches them off)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("n_tokens")
        with torch.set_grad_enabled(self.training and torch.is_grad_enabled()):
            q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
            s = q @ k.transpose(1, 2) * k.shape[-1] ** -0.5
            w = self.dropout(s.masked_fill(self.mask[:n, :n], -torch.inf).softmax(dim=-1))
            return w @ v
