import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        d_head, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"d_out={d_out} cannot be cut into {num_heads} heads")
        self.heads, self.d_head = num_heads, d_head
        self.limit, self.rate, self.causal = context_length, dropout, causal
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        if T > self.limit:
            raise ValueError(f"{T} > {self.limit}")

        # three projections, the same cut for each: (b, t, h*d) -> (b, h, t, d)
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, self.d_head)).movedim(-2, 1)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        logits = (q @ k.mT).div(self.d_head**0.5)
        if self.causal:
            t = torch.arange(T, device=x.device)
            logits = torch.where(t[:, None] < t[None, :], logits.new_tensor(-torch.inf), logits)
        w = F.dropout(logits.softmax(-1), p=self.rate, training=self.training)
        return self.out_proj((w @ v).movedim(1, -2).flatten(-2))
