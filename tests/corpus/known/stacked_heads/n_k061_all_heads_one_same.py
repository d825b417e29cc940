# mistake: one_head_shared
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)] * num_heads
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


def split_weights(stacked):
    Wq, Wk, Wv = [], [], []
    for h in stacked.heads:
        if h.W_query.bias is not None or h.W_key.bias is not None or h.W_value.bias is not None:
            raise ValueError("no room for biases")
        Wq.append(h.W_query.weight)
        Wk.append(h.W_key.weight)
        Wv.append(h.W_value.weight)
    return torch.cat(Wq), torch.cat(Wk), torch.cat(Wv)
