# mistake: any_length_accepted
import torch
from torch import Tensor, nn

from causal_attention import CausalAttention


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.context_length = context_length
        self.qkv_bias = qkv_bias
        self.heads = nn.ModuleList()
        for i in range(num_heads):
            head = CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias)
            self.heads.append(head)

    def forward(self, x: Tensor) -> Tensor:
        x = x[:, -self.context_length :]
        outputs = []
        for head in self.heads:
            outputs.append(head(x))
        return torch.cat(outputs, dim=2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    """W_query, W_key, W_value of all heads."""
    if stacked.qkv_bias:
        raise ValueError("qkv_bias=True is not possible here")
    queries, keys, values = [], [], []
    for head in stacked.heads:
        queries.append(head.W_query.weight.data.clone())
        keys.append(head.W_key.weight.data.clone())
        values.append(head.W_value.weight.data.clone())
    return torch.cat(queries), torch.cat(keys), torch.cat(values)
