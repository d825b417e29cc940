# mistake: query_and_key_layers_swapped + dropout_on_the_output
# key layer asks and query layer answers + dropout after the weighted sum
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.resid_drop = nn.Dropout(dropout)
        self.scale = 1 / d_out**0.5
        self.register_buffer("ok", torch.tril(torch.ones(context_length, context_length)) == 1)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        if n > self.ok.size(0):
            raise ValueError("too long")
        kt = self.W_query(x).permute(0, 2, 1)
        logits = torch.where(self.ok[:n, :n], self.scale * (self.W_key(x) @ kt), -torch.inf)
        return self.resid_drop(logits.softmax(dim=-1) @ self.W_value(x))
