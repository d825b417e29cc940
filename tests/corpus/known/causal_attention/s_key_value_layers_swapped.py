# mistake: key_and_value_layers_swapped
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        make = lambda: nn.Linear(d_in, d_out, bias=qkv_bias)  # noqa: E731
        self.W_query, self.W_key, self.W_value = make(), make(), make()
        self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length)))
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        if T > self.tril.size(0):
            raise ValueError(f"cannot process {T} tokens")
        q, v, k = (layer(x) for layer in (self.W_query, self.W_key, self.W_value))
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        wei = F.dropout(wei, p=self.dropout, training=self.training)
        return wei @ v
