# mistake: joined_along_the_tokens
import torch
from causal_attention import CausalAttention
from torch import nn


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        heads = [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        self.heads = nn.ModuleList(heads)
        self.width = num_heads * d_out

    def forward(self, x):
        batch, tokens = x.shape[:2]
        outputs = torch.cat([head(x) for head in self.heads], dim=1)
        return outputs.reshape(batch, tokens, self.width)


def split_weights(stacked):
    layers = [(h.W_query, h.W_key, h.W_value) for h in stacked.heads]
    if [m for row in layers for m in row if m.bias is not None]:
        raise ValueError("qkv_bias=True cannot be split")
    stackable = torch.stack([torch.stack([m.weight for m in row]) for row in layers], dim=1)
    return tuple(stackable.flatten(1, 2).unbind(0))
