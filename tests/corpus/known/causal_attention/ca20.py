# mistake: scaled_after_softmax + dropout_in_eval
# weights divided by the root after the softmax + a fresh Dropout made in forward
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.context_length, self.p_drop = context_length, dropout
        self.register_buffer("mask", torch.full((context_length, context_length), -torch.inf).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        num_tokens = x.shape[1]
        if num_tokens > self.context_length:
            raise ValueError("num_tokens > context_length")
        keys = self.W_key(x)
        scores = self.W_query(x) @ keys.transpose(1, 2) + self.mask[:num_tokens, :num_tokens]
        weights = torch.softmax(scores, dim=-1) / keys.shape[-1] ** 0.5
        return nn.Dropout(self.p_drop)(weights) @ self.W_value(x)
