# mistake: same_in_each_call
import torch
from torch import Tensor, nn


def keep_mask(shape, rate: float, device) -> Tensor:
    source = torch.Generator().manual_seed(0)
    return (torch.rand(shape, generator=source) >= rate).to(device)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float,
                 num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("bad number of heads")
        self.num_heads, self.rate = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        ones = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("seen", ones.tril() if causal else ones)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.seen.shape[0]:
            raise ValueError("too many tokens")
        h = self.num_heads
        q = self.W_query(x).view(b, n, h, -1).transpose(1, 2)
        k = self.W_key(x).view(b, n, h, -1).permute(0, 2, 3, 1)
        v = self.W_value(x).view(b, n, h, -1).transpose(1, 2)
        s = (q @ k) / q.shape[-1] ** 0.5
        w = torch.softmax(s.where(self.seen[:n, :n], -torch.inf), dim=-1)
        if self.training:
            keep = keep_mask(w.shape, self.rate, w.device)
            w = torch.where(keep, w / max(1 - self.rate, 1e-12), 0.0)
        return self.out_proj((w @ v).transpose(1, 2).reshape(b, n, -1))
