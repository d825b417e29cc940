# mistake: masked_after_softmax
# the weights are cut to a lower triangle, rows do not sum to 1
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("mask_simple", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if self.mask_simple.shape[0] < n:
            raise ValueError("input longer than context_length")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1)
        return self.drop(torch.einsum("bij,ij->bij", weights, self.mask_simple[:n, :n])) @ v
