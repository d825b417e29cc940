# mistake: softmax_over_queries
# scores are built keys first and normalised along the query axis
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.max_tokens = context_length
        self.temper = d_out**0.5
        self.dropout = nn.Dropout(dropout)
        # rows: keys, columns: queries
        self.register_buffer("hidden", torch.ones(context_length, context_length).tril(-1) > 0)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.max_tokens:
            raise ValueError
        table = torch.einsum("bkd,bqd->bkq", self.W_key(x), self.W_query(x)) / self.temper
        table = table.masked_fill(self.hidden[:n, :n], float("-inf"))
        table = self.dropout(torch.softmax(table, dim=-1))
        return torch.einsum("bkq,bkv->bqv", table, self.W_value(x))
