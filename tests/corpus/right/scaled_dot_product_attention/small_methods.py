# right: many small methods, a property, functional dropout, linear algebra with matmul of checked shapes, masks by sequence comparison
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


_REASON = "batched_product: (batch, n, m) and (batch, m, p) expected, got {} and {}"


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    match tuple(a.shape), tuple(b.shape):
        case (batch_a, _, m_a), (batch_b, m_b, _) if batch_a == batch_b and m_a == m_b:
            return torch.matmul(a, b)
        case shapes:
            raise ValueError(_REASON.format(*shapes))


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = dropout
        self._last = None

    @property
    def attention_weights(self) -> Tensor:
        return self._last

    def _scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        fourth_root = queries.shape[-1] ** 0.25
        return batched_product(queries / fourth_root, keys.movedim(2, 1) / fourth_root)

    @staticmethod
    def _without_padding(values: Tensor, valid_lens: Tensor | None) -> Tensor:
        if valid_lens is None:
            return values
        index = torch.arange(values.shape[1], device=values.device).view(1, -1, 1)
        last = valid_lens.view(-1, 1, 1) if valid_lens.dim() == 1 else valid_lens.amax(1).view(-1, 1, 1)
        return values.masked_fill(index.ge(last), 0.0)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        self._last = masked_softmax(self._scores(queries, keys), valid_lens)
        kept = F.dropout(self._last, p=self.rate, training=self.training, inplace=False)
        return batched_product(kept, self._without_padding(values, valid_lens))
