import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Mask(nn.Module):
    """Closes the future of a square table of scores."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("open", torch.tril(torch.ones(size, size, dtype=torch.bool)))

    def forward(self, scores: Tensor) -> Tensor:
        n = scores.shape[-1]
        if n > self.open.shape[0]:
            raise ValueError(f"the context holds {self.open.shape[0]} tokens, not {n}")
        return scores.masked_fill(~self.open[:n, :n], torch.finfo(scores.dtype).min)


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
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.mask = Mask(context_length)
        self.after_softmax = nn.Sequential(nn.Softmax(dim=-1), nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        layers = (self.W_query, self.W_key, self.W_value)
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
        q, k, v = F.linear(x, weight, bias).chunk(3, dim=-1)
        scores = self.mask((q @ k.transpose(1, 2)) / q.shape[-1] ** 0.5)
        return self.after_softmax(scores) @ v
