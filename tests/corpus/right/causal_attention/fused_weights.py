# note: one fused projection from the concatenated weights, a non-persistent boolean buffer, log_softmax and a mask from position differences
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.register_module("W_query", nn.Linear(d_in, d_out, bias=qkv_bias))
        self.register_module("W_key", nn.Linear(d_in, d_out, bias=qkv_bias))
        self.register_module("W_value", nn.Linear(d_in, d_out, bias=qkv_bias))
        position = torch.arange(context_length)
        later = position.unsqueeze(0) - position.unsqueeze(1) > 0
        self.register_buffer("later", later, persistent=False)
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()

    @property
    def _layers(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        return self.W_query, self.W_key, self.W_value

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.later.size(0):
            raise ValueError("x has more tokens than context_length")
        weight = torch.cat([layer.weight for layer in self._layers])
        biases = [layer.bias for layer in self._layers]
        bias = None if biases[0] is None else torch.cat(biases)
        q, k, v = F.linear(x, weight, bias).tensor_split(3, dim=-1)
        scores = (q @ k.transpose(-2, -1)).div(q.size(-1) ** 0.5)
        scores = torch.where(self.later[:n, :n], -torch.inf, scores)
        return self.drop(scores.log_softmax(-1).exp()) @ v
