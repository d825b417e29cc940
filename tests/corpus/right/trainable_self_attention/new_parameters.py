# note: the root of d_out is split between queries and keys, V2 multiplies by hand with einsum, and copy_weights installs new parameters
import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    quarter = queries.shape[-1] ** 0.25
    scores = torch.einsum("...qd,...kd->...qk", queries / quarter, keys / quarter)
    return torch.einsum("...qk,...kd->...qd", torch.log_softmax(scores, -1).exp(), values)


class SelfAttentionV1(nn.Module):
    W_query: nn.Parameter
    W_key: nn.Parameter
    W_value: nn.Parameter

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.empty(d_in, d_out).uniform_())
        self.W_key = nn.Parameter(torch.empty(d_in, d_out).uniform_())
        self.W_value = nn.Parameter(torch.empty(d_in, d_out).uniform_())

    def forward(self, x: Tensor) -> Tensor:
        qkv = (torch.einsum("...ni,io->...no", x, w) for w in (self.W_query, self.W_key, self.W_value))
        return scaled_attention(*qkv)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    @staticmethod
    def _apply_layer(layer: nn.Linear, x: Tensor) -> Tensor:
        y = torch.einsum("...ni,oi->...no", x, layer.weight)
        return y if layer.bias is None else y + layer.bias

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(
            *(self._apply_layer(layer, x) for layer in (self.W_query, self.W_key, self.W_value))
        )


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    def fresh(layer: nn.Linear) -> nn.Parameter:
        if layer.bias is not None:
            raise ValueError("biases cannot be carried over")
        return nn.Parameter(layer.weight.detach().clone().swapdims(0, 1))

    new = [fresh(layer) for layer in (source_v2.W_query, source_v2.W_key, source_v2.W_value)]
    target_v1.W_query, target_v1.W_key, target_v1.W_value = new
