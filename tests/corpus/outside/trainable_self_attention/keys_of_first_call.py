# mistake: V2 remembers the keys of the first call in the object and uses them again for every x of the same shape
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SelfAttentionV1(nn.Module):
    """Self-attention with nn.Parameter."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.scale = d_out ** -0.5
        for name in ("W_query", "W_key", "W_value"):
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x: Tensor) -> Tensor:
        query = torch.einsum("...nd,de->...ne", x, self.W_query) * self.scale
        key = torch.einsum("...nd,de->...ne", x, self.W_key)
        value = torch.einsum("...nd,de->...ne", x, self.W_value)
        weights = torch.einsum("...qe,...ke->...qk", query, key).softmax(-1)
        return torch.einsum("...qk,...ke->...qe", weights, value)


class SelfAttentionV2(nn.Module):
    """Self-attention with nn.Linear."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.scale = d_out ** -0.5
        self.W_query = nn.Linear(in_features=d_in, out_features=d_out, bias=qkv_bias)
        self.W_key = nn.Linear(in_features=d_in, out_features=d_out, bias=qkv_bias)
        self.W_value = nn.Linear(in_features=d_in, out_features=d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        query = self.W_query(x) * self.scale
        if getattr(self, "last_key", None) is None or self.last_key.shape[:-1] != x.shape[:-1]:
            self.last_key = self.W_key(x)
        key = self.last_key
        value = self.W_value(x)
        weights = torch.einsum("...qe,...ke->...qk", query, key).softmax(-1)
        return torch.einsum("...qk,...ke->...qe", weights, value)


@torch.no_grad()
def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    params = dict(source_v2.named_parameters())
    if any(name.endswith("bias") for name in params):
        raise ValueError("a source with biases can not be copied")
    for name, param in target_v1.named_parameters():
        param.copy_(params[name + ".weight"].t())
