# mistake: interleaved_heads
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
        self.h = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.dropout = nn.Dropout(dropout)
        mask = torch.ones(context_length, context_length, dtype=torch.bool)
        if causal:
            mask = torch.tril(mask)
        self.register_buffer("allowed", mask)

    def split(self, out: Tensor) -> Tensor:
        return out.unflatten(-1, (-1, self.h)).movedim(-1, 1)

    def forward(self, x: Tensor) -> Tensor:
        seq = x.shape[1]
        if seq > self.allowed.shape[0]:
            raise ValueError("T > context_length")
        Q = self.split(self.W_query(x))
        K = self.split(self.W_key(x))
        V = self.split(self.W_value(x))
        Q = Q * Q.shape[-1] ** -0.5
        att = Q @ K.transpose(-1, -2)
        att = torch.where(self.allowed[:seq, :seq], att, -torch.inf)
        att_w = self.dropout(softmax(att))
        heads_out = att_w @ V
        return self.out_proj(torch.cat(heads_out.unbind(1), dim=-1))
