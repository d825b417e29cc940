import torch
from causal_attention import CausalAttention
from torch import nn


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        args = (d_in, d_out, context_length, dropout, qkv_bias)
        self.heads = nn.ModuleList(CausalAttention(*args) for _ in range(num_heads))

    def forward(self, x):
        batch, n_tokens, _ = x.shape
        out = x.new_zeros(batch, n_tokens, len(self.heads) * self.d_out)
        for i, head in enumerate(self.heads):
            out[:, :, i * self.d_out : (i + 1) * self.d_out] = head(x)
        return out


@torch.no_grad()
def split_weights(stacked):
    state = stacked.state_dict()
    found = {"W_query": [], "W_key": [], "W_value": []}
    for i in range(len(stacked.heads)):
        for name, parts in found.items():
            if f"heads.{i}.{name}.bias" in state:
                raise ValueError(f"head {i} has a bias in {name}")
            parts.append(state[f"heads.{i}.{name}.weight"])
    return tuple(torch.vstack(parts) for parts in found.values())
