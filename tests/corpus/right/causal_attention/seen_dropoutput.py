# right: the twin of one with a mistake, dropoutput
# seen: nikhilbarhate99's min-decision model, issue 2. Mistake: dropout is applied to the weighted sum of the values in place of the weights. (Fixed in this twin.)
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
        self.att_drop = nn.Dropout(dropout)
        ones = torch.ones(context_length, context_length)
        self.register_buffer("tril", torch.tril(ones).bool())

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        if T > self.tril.size(0):
            raise ValueError(f"context holds {self.tril.size(0)} tokens, got {T}")
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)

        att = torch.einsum("bid,bjd->bij", q, k) * (k.size(-1) ** -0.5)
        att = att.masked_fill(self.tril[:T, :T].logical_not(), float("-inf"))
        att = torch.softmax(att, dim=-1)
        return torch.einsum("bij,bjd->bid", self.att_drop(att), v)
