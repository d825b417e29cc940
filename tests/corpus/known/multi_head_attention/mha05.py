# mistake: scaled_by_root_of_num_heads
# divides by the root of a wrong axis, which is the number of heads
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        self.d_head, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError("heads of unequal size")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        allowed = torch.ones(context_length, context_length, dtype=torch.bool)
        if causal:
            allowed = allowed.tril()
        self.register_buffer("allowed", allowed)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > len(self.allowed):
            raise ValueError("n_tokens > context_length")
        q = self.W_query(x).unflatten(-1, (-1, self.d_head))
        k = self.W_key(x).unflatten(-1, (-1, self.d_head))
        v = self.W_value(x).unflatten(-1, (-1, self.d_head))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-2] ** 0.5
        scores = torch.where(self.allowed[:n, :n], scores, -torch.inf)
        weights = self.drop(torch.softmax(scores, dim=-1))
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(-2))
