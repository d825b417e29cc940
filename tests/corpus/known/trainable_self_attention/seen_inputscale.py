# mistake: scaled_by_root_of_d_in
# seen: Graylab/DL4Proteins-notebooks issue 12. Mistake: the scores are scaled by the root of the size of the input, not of a query and key.
import torch
from torch import Tensor, nn


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        k = x @ self.W_key
        q = x @ self.W_query
        C = x.shape[-1]
        wei = (q @ k.mT) * C**-0.5
        wei = torch.softmax(wei, dim=-1)
        return wei @ (x @ self.W_value)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        k = self.W_key(x)
        q = self.W_query(x)
        C = x.shape[-1]
        wei = (q @ k.mT) * C**-0.5
        wei = torch.softmax(wei, dim=-1)
        return wei @ self.W_value(x)


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    if any("bias" in name for name, _ in source_v2.named_parameters()):
        raise ValueError("source_v2 has biases")
    with torch.no_grad():
        target_v1.W_query.copy_(source_v2.W_query.weight.t())
        target_v1.W_key.copy_(source_v2.W_key.weight.t())
        target_v1.W_value.copy_(source_v2.W_value.weight.t())
