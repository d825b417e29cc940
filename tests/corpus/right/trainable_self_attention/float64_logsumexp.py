# right: scores and softmax in float64 with logsumexp, cast back at the end; common base class
import torch
from torch import Tensor, nn


class _SelfAttention(nn.Module):
    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = (t.double() for t in self.project(x))
        root = torch.tensor(float(keys.shape[-1]), dtype=torch.float64, device=x.device).sqrt()
        scores = queries.matmul(keys.mT).div(root)
        weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
        return weights.matmul(values).to(x.dtype)


class SelfAttentionV1(_SelfAttention):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x @ self.W_query, x @ self.W_key, x @ self.W_value


class SelfAttentionV2(_SelfAttention):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.W_query(x), self.W_key(x), self.W_value(x)


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    """The target gets new parameters."""
    for name in ("W_query", "W_key", "W_value"):
        layer = source_v2.get_submodule(name)
        if layer.bias is not None:
            raise ValueError("no biases, please")
        setattr(target_v1, name, nn.Parameter(layer.weight.detach().T.clone()))
