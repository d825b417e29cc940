# right: all pairs of a query and a key in one flat axis (repeat_interleave and repeat); weights kept behind a property
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        for name, size in (("W_q", d_query), ("W_k", d_key)):
            self.add_module(name, nn.Linear(size, num_hiddens, bias=False))
        self.add_module("w_v", nn.Linear(num_hiddens, 1, bias=False))
        self.rate = float(dropout)
        self._kept: list[Tensor] = []

    @property
    def attention_weights(self) -> Tensor:
        return self._kept[-1]

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        b, n, _ = queries.shape
        m = keys.size(1)
        pairs = torch.tanh(
            torch.repeat_interleave(self.W_q(queries), m, dim=1) + self.W_k(keys).repeat(1, n, 1)
        )
        w = masked_softmax((pairs @ self.w_v.weight[0]).reshape(b, n, m), valid_lens)
        self._kept[:] = [w.detach()]
        w = torch.dropout(w, self.rate, self.training)
        return torch.einsum("bnm,bmv->bnv", w, values)
