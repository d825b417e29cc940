# mistake: float32_mask
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.scale = d_out**-0.5
        self.context_length = context_length
        self.mask = torch.full((context_length, context_length), float("-inf")).triu(diagonal=1)

    def forward(self, x: Tensor) -> Tensor:
        t = x.shape[-2]
        if t > self.context_length:
            raise ValueError(f"{t} tokens, but context_length is {self.context_length}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        logits = torch.matmul(q, k.transpose(-1, -2)) * self.scale + self.mask[:t, :t]
        probs = self.attn_dropout(torch.softmax(logits, dim=-1))
        return torch.matmul(probs, v)
