# mistake: scaled_by_root_of_n_tokens + values_from_the_key_layer
# the scale comes from the length of the transposed keys + keys are summed instead of values
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out % num_heads != 0")
        self.n_head, self.causal, self.block_size = num_heads, causal, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("bias", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.size()
        if T > self.block_size:
            raise ValueError(f"block size is {self.block_size}")
        q = self.W_query(x).view(B, T, self.n_head, -1).transpose(1, 2)
        k = self.W_key(x).view(B, T, self.n_head, -1).permute(0, 2, 3, 1)
        att = (q @ k) * (1.0 / k.size(-1) ** 0.5)
        if self.causal:
            att = att.masked_fill(self.bias[:T, :T] == 0, float("-inf"))
        att = self.attn_dropout(att.softmax(-1))
        y = att @ k.transpose(2, 3)
        return self.out_proj(y.transpose(1, 2).contiguous().view(B, T, -1))
