import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scores = torch.einsum("...qd,...kd->...qk", queries * queries.shape[-1] ** -0.5, keys)
    return torch.einsum("...qk,...kd->...qd", scores.softmax(-1), values)


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        # one product with the three matrices side by side
        qkv = x @ torch.cat((self.W_query, self.W_key, self.W_value), dim=1)
        return scaled_attention(*qkv.chunk(3, dim=-1))


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x))


@torch.no_grad()
def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    pairs = [(getattr(source_v2, n), getattr(target_v1, n)) for n in ("W_query", "W_key", "W_value")]
    if any(linear.bias is not None for linear, _ in pairs):
        raise ValueError("the source has biases, a V1 has none")
    for linear, matrix in pairs:
        matrix.copy_(linear.weight.mT)
