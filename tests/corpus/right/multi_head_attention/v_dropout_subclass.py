# right: a subclass of nn.Dropout draws its own mask with torch.rand, once per call for all heads
import torch
from torch import Tensor, nn


class MaskDropout(nn.Dropout):
    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return input
        alive = torch.rand(input.shape, device=input.device) >= self.p
        factor = 0.0 if self.p == 1 else 1 / (1 - self.p)
        return torch.where(alive, input * factor, torch.zeros_like(input))


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
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        self.heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = MaskDropout(dropout)
        hidden = torch.ones(context_length, context_length).triu(1).bool() if causal else None
        self.register_buffer("hidden", hidden)

    def _heads(self, t: Tensor) -> Tensor:
        return t.unflatten(-1, (self.heads, -1)).movedim(-2, 1)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        q, k, v = map(self._heads, (self.W_query(x), self.W_key(x), self.W_value(x)))
        s = q @ k.mT / q.shape[-1] ** 0.5
        if self.hidden is not None:
            s = s.masked_fill(self.hidden[:n, :n], -torch.inf)
        w = self.drop(s.softmax(-1))
        return self.out_proj((w @ v).movedim(1, -2).flatten(-2))
