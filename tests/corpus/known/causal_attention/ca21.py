# mistake: no_mask + dropout_before_softmax
# the mask is registered and never applied + scores are dropped before the softmax
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.scores_to_weights = nn.Sequential(nn.Dropout(dropout), nn.Softmax(dim=-1))
        self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length)).bool())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError(f"{n} > {self.mask.shape[0]}")
        mask = self.mask[:n, :n]
        scores = self.W_query(x) @ self.W_key(x).mT
        scores = scores / (self.W_query.out_features ** 0.5)
        scores.masked_fill(mask.logical_not(), float("-inf"))
        return self.scores_to_weights(scores) @ self.W_value(x)
