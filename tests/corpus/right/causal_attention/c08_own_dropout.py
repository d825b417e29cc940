import torch
from torch import Tensor, nn


def drop(w: Tensor, p: float, training: bool) -> Tensor:
    if not training or p == 0:
        return w
    if p >= 1:
        return torch.zeros_like(w) * w
    keep = torch.rand_like(w, dtype=torch.float32) >= p
    return torch.where(keep, w / (1 - p), torch.zeros_like(w))


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = dropout
        self.scale = d_out**0.5
        self.register_buffer("mask", torch.ones(context_length, context_length).tril())

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.shape[1]
        if self.mask.shape[0] < tokens:
            raise ValueError("too many tokens")
        mask = self.mask[:tokens, :tokens]
        scores = self.W_query(x).matmul(self.W_key(x).transpose(1, 2)) / self.scale
        weights = scores.masked_fill(mask == 0, -torch.inf).softmax(dim=2)
        return drop(weights, self.dropout, self.training).matmul(self.W_value(x))
