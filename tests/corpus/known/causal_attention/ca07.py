# mistake: scaled_by_root_of_d_in
# divides by the root of the size of the input
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        make = lambda: nn.Linear(d_in, d_out, bias=qkv_bias)  # noqa: E731
        self.W_query = make()
        self.W_key = make()
        self.W_value = make()
        self.keep = nn.Dropout(dropout)
        self.register_buffer("tri", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        if T > self.tri.size(0):
            raise ValueError("T is too large")
        k, q, v = self.W_key(x), self.W_query(x), self.W_value(x)
        wei = q @ k.transpose(-2, -1) * C**-0.5
        wei = wei.masked_fill(self.tri[:T, :T] == 0, float("-inf"))
        wei = self.keep(wei.softmax(dim=-1))
        return wei @ v
