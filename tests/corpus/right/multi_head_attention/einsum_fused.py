# note: fused projection from the concatenated weights and one five-axis einsum layout, out_proj applied head by head in an einsum, mask by subtraction of positions
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
        if num_heads < 1 or d_out % num_heads:
            raise ValueError(f"{num_heads} heads for {d_out} columns")
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.settings = (num_heads, context_length, float(dropout), bool(causal))

    def forward(self, x: Tensor) -> Tensor:
        heads, limit, rate, causal = self.settings
        _, n, _ = x.shape
        if n > limit:
            raise ValueError(f"more than {limit} tokens")
        layers = (self.W_query, self.W_key, self.W_value)
        weight = torch.stack([layer.weight for layer in layers]).unflatten(1, (heads, -1))
        qkv = torch.einsum("bni,shci->sbhnc", x, weight)
        if layers[0].bias is not None:
            bias = torch.stack([layer.bias for layer in layers]).unflatten(1, (heads, -1))
            qkv = qkv + bias[:, None, :, None, :]
        q, k, v = qkv.unbind(0)
        scores = torch.einsum("bhqc,bhkc->bhqk", q * q.shape[-1] ** -0.5, k)
        if causal:
            i = torch.arange(n, device=x.device)
            scores = scores.where(i[:, None] - i >= 0, -torch.inf)
        w = F.dropout(scores.softmax(-1), rate, self.training)
        mixed = torch.einsum("bhqk,bhkc->bqhc", w, v)
        out_weight = self.out_proj.weight.unflatten(1, (heads, -1))
        return torch.einsum("bqhc,ohc->bqo", mixed, out_weight) + self.out_proj.bias
