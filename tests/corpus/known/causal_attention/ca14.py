# mistake: dropout_on_the_output
# the context vectors are dropped, the weights are not
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.to_out = nn.Sequential(nn.Identity(), nn.Dropout(dropout))
        self.register_buffer("mask", torch.ones((context_length, context_length), dtype=torch.bool).triu(1))

    def attend(self, q, k, v):
        n = q.shape[1]
        sim = torch.einsum("bid,bjd->bij", q, k) * self.d_out**-0.5
        sim = sim.masked_fill(self.mask[:n, :n], -torch.finfo(sim.dtype).max)
        return torch.einsum("bij,bjd->bid", sim.softmax(dim=-1), v)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.mask.shape[0]:
            raise ValueError("sequence is longer than the context")
        return self.to_out(self.attend(self.W_query(x), self.W_key(x), self.W_value(x)))
