# mistake: float32_mask
# the float mask does not move with the module
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        steps = torch.arange(context_length)
        self.mask = torch.where(steps[:, None] >= steps, 0.0, float("-inf"))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError(f"context_length is {self.mask.shape[0]}")
        q = self.W_query(x)
        scores = torch.einsum("bqd,bkd->bqk", q, self.W_key(x)) / q.shape[-1] ** 0.5
        weights = (scores + self.mask[:n, :n]).softmax(dim=-1)
        return torch.einsum("bqk,bkd->bqd", self.dropout(weights), self.W_value(x))
