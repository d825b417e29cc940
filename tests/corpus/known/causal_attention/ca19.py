# mistake: keys_from_the_query_layer + length_not_checked
# queries serve as keys too + any number of tokens is taken
import torch
from torch import Tensor, nn


def subsequent_mask(size, device):
    return torch.arange(size, device=device)[:, None] >= torch.arange(size, device=device)[None, :]


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("context", torch.ones(context_length, context_length, dtype=torch.bool), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        q, v = self.W_query(x), self.W_value(x)
        gram = q @ q.transpose(1, 2) / q.size(-1) ** 0.5
        gram = gram.masked_fill(subsequent_mask(x.size(1), x.device) == 0, float("-inf"))
        return self.dropout(gram.softmax(-1)) @ v
