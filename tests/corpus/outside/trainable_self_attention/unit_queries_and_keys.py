# mistake: queries and keys are divided by their lengths before the product (cosines)
import torch
from torch import nn


class Base(nn.Module):
    def forward(self, x):
        q, k, v = (self.projected(name, x) for name in ("query", "key", "value"))
        q, k = (each / each.norm(dim=-1, keepdim=True) for each in (q, k))
        return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v


class SelfAttentionV1(Base):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3)
        )

    def projected(self, name, x):
        return x @ getattr(self, "W_" + name)


class SelfAttentionV2(Base):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, qkv_bias) for _ in range(3)
        )

    def projected(self, name, x):
        return getattr(self, "W_" + name)(x)


def copy_weights(source_v2, target_v1):
    if any(name.endswith("bias") for name in source_v2.state_dict()):
        raise ValueError("biases")
    with torch.no_grad():
        for name, matrix in target_v1.named_parameters():
            matrix.copy_(getattr(source_v2, name).weight.T)
