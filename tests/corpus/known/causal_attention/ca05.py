# mistake: no_scale
# the scores are not divided by anything
import torch
from torch import Tensor, nn


def causal_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    peak = scores.masked_fill(~allowed, float("-inf")).amax(dim=-1, keepdim=True)
    e = torch.exp((scores - peak).masked_fill(~allowed, float("-inf")))
    return e / e.sum(dim=-1, keepdim=True)


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(p=dropout)
        self.register_buffer("allowed", torch.tril(torch.ones(context_length, context_length)).bool())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        if n > self.allowed.shape[0]:
            raise ValueError("more tokens than context_length")
        queries, keys, values = (layer(x) for layer in (self.W_query, self.W_key, self.W_value))
        weights = causal_softmax(queries @ keys.mT, self.allowed[:n, :n])
        return self.dropout(weights) @ values
