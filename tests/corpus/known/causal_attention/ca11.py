# mistake: mask_not_sliced
# the full mask is used, fewer tokens than context_length fail
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        minus_inf = torch.full((context_length, context_length), float("-inf"))
        self.register_buffer("attn_mask", minus_inf.triu(diagonal=1))

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.attn_mask.size(0):
            raise ValueError("n_tokens > context_length")
        scale = self.W_key.out_features**-0.5
        scores = torch.matmul(self.W_query(x) * scale, self.W_key(x).transpose(1, 2))
        weights = torch.softmax(torch.add(scores, self.attn_mask), dim=-1)
        return torch.matmul(self.dropout(weights), self.W_value(x))
