# mistake: causal_always
import torch
from torch import Tensor, nn


def softmax(scores: Tensor) -> Tensor:
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out and num_heads do not fit")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.dropout = nn.Dropout(dropout)
        mask = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", mask)

    def split(self, merged: Tensor) -> Tensor:
        return torch.stack(merged.chunk(self.num_heads, dim=-1), dim=1)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("T > context_length")
        query = self.split(self.W_query(x))
        key = self.split(self.W_key(x))
        value = self.split(self.W_value(x))
        query = query * query.shape[-1] ** -0.5
        logits = query @ key.transpose(-1, -2)
        logits = torch.where(self.mask[:n, :n], logits, -torch.inf)
        probs = self.dropout(softmax(logits))
        ctx = probs @ value
        return self.out_proj(torch.cat(ctx.unbind(1), dim=-1))
