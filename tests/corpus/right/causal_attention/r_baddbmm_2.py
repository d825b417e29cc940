import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)
        # bool, so .to(dtype) leaves it as it is
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu_(1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.future.size(0):
            raise ValueError(f"{n} tokens, but at most {self.future.size(0)} are allowed")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        nothing = q.new_zeros(1, 1, 1)
        s = torch.baddbmm(nothing, q, k.mT, beta=0, alpha=q.size(-1) ** -0.5)
        s = s.masked_fill(self.future[:n, :n], float("-inf"))
        return torch.bmm(self.drop(s.softmax(dim=2)), v)
