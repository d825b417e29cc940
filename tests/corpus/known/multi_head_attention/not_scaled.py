# mistake: no_scale + float32_mask
import torch
from torch import Tensor, nn


def softmax(s: Tensor) -> Tensor:
    e = (s - s.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out and num_heads do not fit")
        self.heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.dropout = nn.Dropout(dropout)
        mask = torch.ones(context_length, context_length, dtype=torch.bool)
        if causal:
            mask = torch.tril(mask)
        self.register_buffer("mask", mask)

    def split(self, y: Tensor) -> Tensor:
        return torch.stack(y.chunk(self.heads, dim=-1), dim=1)

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        if T > self.mask.shape[0]:
            raise ValueError("T > context_length")
        Q = self.split(self.W_query(x))
        K = self.split(self.W_key(x))
        V = self.split(self.W_value(x))
        S = Q @ K.transpose(-1, -2)
        S = torch.where(self.mask[:T, :T], S, -torch.inf)
        W = self.dropout(softmax(S))
        Y = W @ V
        return self.out_proj(torch.cat(Y.unbind(1), dim=-1))
