# mistake: values_from_the_key_layer + scaled_by_d_out
# one output of a layer plays key and value + divides by the size itself
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("future", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.future.shape[0]:
            raise ValueError("too many tokens")
        memory = self.W_key(x)
        scores = torch.bmm(self.W_query(x), memory.mT).div_(memory.shape[-1])
        scores = scores.masked_fill(self.future[:n, :n], float("-inf"))
        attn = self.dropout(nn.functional.softmax(scores, dim=-1))
        return torch.bmm(attn, memory)
