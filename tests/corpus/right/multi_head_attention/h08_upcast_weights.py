import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int,
        qkv_bias: bool = False, causal: bool = True,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads has to divide d_out")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.config = {"heads": num_heads, "ctx": context_length, "causal": causal}
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("keep", torch.tril(torch.ones(context_length, context_length, dtype=torch.int8)))

    def _scores(self, q, k):
        s = torch.matmul(q, k.transpose(-1, -2)) * (q.shape[-1] ** -0.5)
        if self.config["causal"]:
            n = s.shape[-1]
            s = s.masked_fill(self.keep[:n, :n].eq(0), -torch.inf)
        return s

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.config["ctx"]:
            raise ValueError("more tokens than the context holds")
        h = self.config["heads"]
        q, k, v = (t.unflatten(2, (h, t.shape[2] // h)).transpose(1, 2)
                   for t in (self.W_query(x), self.W_key(x), self.W_value(x)))
        s = self._scores(q, k)
        w = torch.softmax(s, dim=-1, dtype=torch.float64 if s.dtype == torch.float64 else torch.float32).to(s.dtype)
        joined = (self.dropout(w) @ v).transpose(1, 2).flatten(start_dim=2)
        return self.out_proj(joined)
