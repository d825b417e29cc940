"""Trainable self-attention around one class, whose second version wraps layers."""

from torch import nn, no_grad, rand

NAMES = "W_query", "W_key", "W_value"


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for name in NAMES:
            self.register_parameter(name, nn.Parameter(rand(d_in, d_out)))

    def project(self, x):
        return (x @ getattr(self, name) for name in NAMES)

    def forward(self, x):
        q, k, v = self.project(x)
        return (q * k.shape[-1] ** -0.5 @ k.mT).softmax(-1) @ v


class SelfAttentionV2(SelfAttentionV1):
    def __init__(self, d_in, d_out, qkv_bias=False):
        nn.Module.__init__(self)
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")

    def project(self, x):
        return (getattr(self, name)(x) for name in NAMES)


@no_grad()
def copy_weights(source_v2, target_v1):
    if any(name.endswith("bias") for name, _ in source_v2.named_parameters()):
        raise ValueError("source_v2 has biases")
    for name in NAMES:
        getattr(target_v1, name).data = getattr(source_v2, name).weight.T.clone()
