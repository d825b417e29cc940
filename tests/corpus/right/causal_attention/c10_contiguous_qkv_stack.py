import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Stacks queries, keys and values and unbinds them again; softmax with a shifted maximum."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        for role in ["query", "key", "value"]:
            self.add_module(f"W_{role}", nn.Linear(d_in, d_out, bias=qkv_bias))
        self.attend = nn.Sequential(nn.Softmax(dim=-1), nn.Dropout(dropout))
        block = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("lower", block.tril(0))

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.shape[-2]
        limit = self.lower.shape[-1]
        if n_tokens > limit:
            raise ValueError(f"forward got {n_tokens} tokens but context_length is {limit}")
        stacked = torch.stack((self.W_query(x), self.W_key(x), self.W_value(x)))
        q, k, v = stacked.unbind(0)
        k_t = k.movedim(-1, -2).contiguous()
        s = q @ k_t * k.shape[-1] ** -0.5
        s = torch.where(self.lower[:n_tokens, :n_tokens], s, torch.full_like(s, -torch.inf))
        return self.attend(s) @ v
