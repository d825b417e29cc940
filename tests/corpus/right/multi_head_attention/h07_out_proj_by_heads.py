import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Instead of joining the heads, each meets its own columns of out_proj, and the results add up."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be a multiple of num_heads")
        self.H, self.D = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        self.causal = causal
        self.max_tokens = context_length
        if causal:
            self.register_buffer("mask", torch.ones((context_length, context_length), dtype=torch.bool).tril())

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        if T > self.max_tokens:
            raise ValueError(f"T={T} > {self.max_tokens}")
        q, k, v = [m(x).view(B, T, self.H, self.D) for m in (self.W_query, self.W_key, self.W_value)]
        logits = torch.einsum("bthd,bshd->bhts", q, k) * self.D**-0.5
        if self.causal:
            logits = logits.where(self.mask[:T, :T], torch.tensor(-torch.inf, dtype=x.dtype, device=x.device))
        z = torch.einsum("bhts,bshd->bthd", self.drop(logits.softmax(-1)), v)
        W_o = self.out_proj.weight.view(-1, self.H, self.D)
        return torch.einsum("bthd,ohd->bto", z, W_o) + self.out_proj.bias
