# note: dropout by hand; the gap puts the permuted output back in order
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    out = torch.zeros(context_length, d_model)
    p = torch.arange(context_length, dtype=torch.float32).reshape(-1, 1)
    even, odd = out[:, 0::2], out[:, 1::2]
    torch.sin(p / base ** (torch.arange(even.shape[1]) * 2 / d_model), out=even)
    odd.copy_(torch.cos(p / base ** (torch.arange(odd.shape[1]) * 2 / d_model)))
    return out


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.rate = dropout
        self.register_buffer("waves", sinusoidal(context_length, d_model)[None], persistent=False)

    def forward(self, x):
        _, n_tokens, _ = x.shape
        assert n_tokens <= self.waves.shape[1], "too many tokens"
        total = torch.add(x, self.waves[:, :n_tokens])
        if not self.training or self.rate == 0:
            return total
        keep = torch.rand(total.shape, device=x.device) >= self.rate
        return torch.where(keep, total / max(1 - self.rate, 1e-9), torch.zeros_like(total))


def permutation_gap(block, x, permutation):
    back = torch.argsort(permutation)
    restored = block(x[:, permutation])[:, back]
    return torch.max(torch.abs(restored - block(x))).item()
