# right: the twin of one with a mistake, diagonal
# seen: RVC-Boss/GPT-SoVITS issue 965 (t2s_model.py). Mistake: the triangle of allowed keys is shifted by one diagonal, so each token also sees the one after it. (Fixed in this twin.)
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
        self.dropout = nn.Dropout(dropout)
        square = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("allowed", torch.tril(square, diagonal=0))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.allowed.shape[0]:
            raise ValueError(f"{n} tokens, but context_length is {self.allowed.shape[0]}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        scores = scores.masked_fill(~self.allowed[:n, :n], -torch.inf)
        return self.dropout(scores.softmax(dim=-1)) @ v
