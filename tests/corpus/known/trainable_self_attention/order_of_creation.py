# mistake: copied_to_another_name
import torch
from torch import Tensor, nn


class SelfAttentionV1(nn.Module):
    """One matrix each for keys, queries and values."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = (x @ w for w in (self.W_query, self.W_key, self.W_value))
        scores = queries @ keys.transpose(-1, -2) / self.W_key.shape[1] ** 0.5
        return scores.softmax(dim=-1) @ values


class SelfAttentionV2(nn.Module):
    """The same with layers."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = (w(x) for w in (self.W_query, self.W_key, self.W_value))
        scores = queries @ keys.transpose(-1, -2) / self.W_key.out_features ** 0.5
        return scores.softmax(dim=-1) @ values


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    """Copy one parameter after the other."""
    theirs, mine = list(source_v2.parameters()), list(target_v1.parameters())
    if len(theirs) != len(mine):
        raise ValueError("The source has biases!")
    for old, new in zip(theirs, mine):
        new.data.copy_(old.data.T)
