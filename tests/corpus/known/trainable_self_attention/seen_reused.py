# mistake: keys_from_the_queries
# seen: stevezheng23/reading_comprehension_tf pull 284. Mistake: in V2 the keys are made by the projection of the queries, so W_key is never used.
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    queries = queries / queries.shape[-1] ** 0.5
    weights = F.softmax(torch.matmul(queries, keys.transpose(-1, -2)), dim=-1)
    return torch.matmul(weights, values)


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(x.matmul(self.W_query), x.matmul(self.W_key), x.matmul(self.W_value))


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        queries = self.W_query(x)
        keys = self.W_query(x)
        values = self.W_value(x)
        return scaled_attention(queries, keys, values)


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    weights = source_v2.state_dict()
    if any(name.endswith("bias") for name in weights):
        raise ValueError("V1 has no biases")
    target_v1.load_state_dict({
        "W_query": weights["W_query.weight"].T,
        "W_key": weights["W_key.weight"].T,
        "W_value": weights["W_value.weight"].T,
    })
