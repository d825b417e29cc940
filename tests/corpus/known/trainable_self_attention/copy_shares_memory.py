# mistake: storage_shared
import torch
from torch import Tensor, nn


def column_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    # table[..., j, i]: key j for query i, so that the keys are on axis -2
    table = keys @ queries.transpose(-1, -2)
    table /= queries.shape[-1] ** 0.5
    table = table.softmax(dim=-2)
    return (values.transpose(-1, -2) @ table).transpose(-1, -2)


class SelfAttentionV1(nn.Module):
    W_query: nn.Parameter
    W_key: nn.Parameter
    W_value: nn.Parameter

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        fresh = torch.rand(3, d_in, d_out)
        self.W_query = nn.Parameter(fresh[0].clone())
        self.W_key = nn.Parameter(fresh[1].clone())
        self.W_value = nn.Parameter(fresh[2].clone())

    def forward(self, x: Tensor) -> Tensor:
        return column_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        make = lambda: nn.Linear(d_in, d_out, bias=qkv_bias)  # noqa: E731
        self.W_query, self.W_key, self.W_value = make(), make(), make()

    def forward(self, x: Tensor) -> Tensor:
        return column_attention(self.W_query(x), self.W_key(x), self.W_value(x))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    if {name for name, _ in source_v2.named_parameters() if "bias" in name}:
        raise ValueError("source_v2 was made with qkv_bias=True")
    target_v1.W_query = nn.Parameter(source_v2.W_query.weight.T)
    target_v1.W_key = nn.Parameter(source_v2.W_key.weight.T)
    target_v1.W_value = nn.Parameter(source_v2.W_value.weight.T)
