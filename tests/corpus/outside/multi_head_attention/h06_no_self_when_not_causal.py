# mistake: with causal=False the diagonal is masked, so a token does not attend to itself
# true: causal=True is right; with causal=False each token leaves itself out
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out % num_heads != 0")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        ones = torch.ones(context_length, context_length, dtype=torch.bool)
        # a token learns nothing from itself when it may see all the others
        self.register_buffer("hide", ones.triu(1) if causal else torch.eye(context_length, dtype=torch.bool))

    def forward(self, x: Tensor) -> Tensor:
        B, N, _ = x.shape
        if N > self.hide.shape[0]:
            raise ValueError("N")
        q, k, v = (f(x).reshape(B, N, self.num_heads, -1).permute(0, 2, 1, 3)
                   for f in (self.W_query, self.W_key, self.W_value))
        s = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
        hide = self.hide[:N, :N]
        hide = hide & ~hide.all(-1, keepdim=True)
        w = s.masked_fill(hide, -torch.inf).softmax(-1)
        o = self.dropout(w) @ v
        return self.out_proj(o.permute(0, 2, 1, 3).reshape(B, N, -1))
