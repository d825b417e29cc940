# mistake: biases_dropped
import math

import torch
from torch import Tensor, nn


def core(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    shape = q.shape
    batch = math.prod(shape[:-2])
    q, k, v = (t.reshape(batch, shape[-2], shape[-1]) for t in (q, k, v))
    start = q.new_zeros(1, 1, 1)
    scores = torch.baddbmm(start, q, k.transpose(1, 2), beta=0, alpha=1 / math.sqrt(shape[-1]))
    scores = scores - scores.detach().amax(dim=2, keepdim=True)
    weights = scores.exp()
    weights = weights / weights.sum(dim=2, keepdim=True)
    return torch.bmm(weights, v).reshape(shape)


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.register_parameter("W_query", nn.Parameter(torch.empty(d_in, d_out).uniform_()))
        self.register_parameter("W_key", nn.Parameter(torch.empty(d_in, d_out).uniform_()))
        self.register_parameter("W_value", nn.Parameter(torch.empty(d_in, d_out).uniform_()))

    def forward(self, x: Tensor) -> Tensor:
        return core(x.matmul(self.W_query), x.matmul(self.W_key), x.matmul(self.W_value))


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in "W_query W_key W_value".split():
            self.add_module(name, nn.Linear(d_in, d_out, bias=bool(qkv_bias)))

    def forward(self, x: Tensor) -> Tensor:
        return core(self.W_query(x), self.W_key(x), self.W_value(x))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    state = {}
    for name, tensor in source_v2.state_dict().items():
        matrix, kind = name.split(".")
        if kind == "bias":
            continue
        state[matrix] = tensor.t()
    target_v1.load_state_dict(state)
