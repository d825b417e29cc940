# promise: the module has no other parameters (the scale is an nn.Parameter)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.scale = nn.Parameter(torch.tensor(float(d_out)).sqrt())
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("hide", torch.ones(context_length, context_length, dtype=torch.bool).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.hide.size(0):
            raise ValueError("context_length")
        att = torch.einsum("bid,bjd->bij", self.W_query(x), self.W_key(x)) / self.scale
        att = att.masked_fill(self.hide[:n, :n], -torch.inf).softmax(-1)
        return torch.einsum("bij,bjd->bid", self.dropout(att), self.W_value(x))
