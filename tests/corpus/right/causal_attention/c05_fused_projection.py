import torch
from torch import Tensor, nn
from torch.nn.functional import linear


class CausalAttention(nn.Module):
    """The three layers are applied in one product of their stacked weights."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.qkv_bias = qkv_bias
        self.drop = nn.Dropout(dropout)
        mask = torch.zeros(context_length, context_length, dtype=torch.bool)
        r, c = torch.triu_indices(context_length, context_length, offset=1)
        mask[r, c] = True
        self.register_buffer("future", mask)

    def project(self, x):
        layers = (self.W_query, self.W_key, self.W_value)
        weight = torch.cat([m.weight for m in layers])
        bias = torch.cat([m.bias for m in layers]) if self.qkv_bias else None
        return linear(x, weight, bias).chunk(3, dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > len(self.future):
            raise ValueError(f"{n} tokens do not fit into the context of {len(self.future)}")
        q, k, v = self.project(x)
        logits = (q @ k.transpose(-1, -2)).mul(q.size(-1) ** -0.5)
        logits = logits.masked_fill(self.future[:n, :n], -torch.inf)
        return self.drop(logits.softmax(dim=-1)) @ v
