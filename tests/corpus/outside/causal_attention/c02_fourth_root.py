# mistake: scales by the fourth root of d_out (scales only the queries of a "split the scale over both" recipe)
# true: the weights are too sharp by the fourth root of d_out; first token right, d_out 1 right
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.drop = nn.Dropout(p=dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)
        self.register_buffer("future", future)
        self.d_out = d_out

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        if T > self.future.size(0):
            raise ValueError(f"{T} tokens")
        q = self.W_query(x) * self.d_out ** -0.25
        k = self.W_key(x)
        att = torch.einsum("btd,bsd->bts", q, k)
        att = att.masked_fill(self.future[:T, :T], float("-inf")).softmax(-1)
        return torch.einsum("bts,bsd->btd", self.drop(att), self.W_value(x))
