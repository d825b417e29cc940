# mistake: applies the slice of out_proj to each head and adds the bias each time before summing the heads
# true: the output is the expected one plus (num_heads - 1) times out_proj.bias
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out is not a multiple of num_heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.H, self.D = num_heads, d_out // num_heads
        self.max_tokens = context_length
        self.causal = causal
        if causal:
            self.register_buffer("upper", torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), 1))

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        if T > self.max_tokens:
            raise ValueError("T")
        q = self.W_query(x).view(B, T, self.H, self.D)
        k = self.W_key(x).view(B, T, self.H, self.D)
        v = self.W_value(x).view(B, T, self.H, self.D)
        logits = torch.einsum("bthd,bshd->bhts", q, k) / self.D**0.5
        if self.causal:
            logits = logits.masked_fill(self.upper[:T, :T], -torch.inf)
        probs = self.dropout(logits.softmax(dim=-1))
        z = torch.einsum("bhts,bshd->bthd", probs, v)
        W = self.out_proj.weight.view(-1, self.H, self.D)
        per_head = torch.einsum("bthd,ohd->btho", z, W) + self.out_proj.bias
        return per_head.sum(dim=2)
