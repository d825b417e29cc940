# mistake: weights_averaged_over_heads
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        self.d_head, rest = divmod(d_out, num_heads)
        if rest != 0:
            raise ValueError("d_out is no multiple of num_heads")
        self.num_heads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("more tokens than context_length")
        shape = (batch, n, self.num_heads, self.d_head)
        Q = self.W_query(x).view(shape)
        K = self.W_key(x).view(shape)
        V = self.W_value(x).view(shape)
        scores = torch.einsum("bqhd,bkhd->bhqk", Q, K).div(self.d_head**0.5)
        if self.causal:
            row = torch.arange(n, device=x.device)
            scores = scores.where(row[:, None] >= row, scores.new_full((), -torch.inf))
        weights = scores.softmax(dim=-1)
        weights = weights.mean(dim=1, keepdim=True).expand_as(scores)
        heads = torch.einsum("bhqk,bkhd->bqhd", self.drop(weights), V)
        return self.out_proj(heads.flatten(start_dim=2))
