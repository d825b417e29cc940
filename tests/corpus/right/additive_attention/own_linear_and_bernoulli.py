# right: a linear layer and dropout of its own, tanh by exp
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class _Linear(nn.Module):
    def __init__(self, n_in: int, n_out: int):
        super().__init__()
        bound = n_in**-0.5
        self.weight = nn.Parameter(torch.empty(n_out, n_in).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.t()


def _tanh(x: Tensor) -> Tensor:
    return 2 * torch.sigmoid(2 * x) - 1


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = _Linear(d_query, num_hiddens)
        self.W_k = _Linear(d_key, num_hiddens)
        self.w_v = _Linear(num_hiddens, 1)
        self.p = dropout

    def _drop(self, weights: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return weights
        if self.p == 1:
            return weights * 0
        dropped = torch.rand(weights.shape, device=weights.device) < self.p
        return weights.masked_fill(dropped, 0) / (1 - self.p)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        hidden = _tanh(self.W_q(queries).unsqueeze(-2) + self.W_k(keys).unsqueeze(-3))
        self.attention_weights = masked_softmax(self.w_v(hidden).flatten(-2), valid_lens)
        return torch.bmm(self._drop(self.attention_weights), values)
