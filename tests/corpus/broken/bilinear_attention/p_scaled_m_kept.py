# promise: Without gradients, M / sqrt(d_key) is computed once and kept, so a later change of M has no effect.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key))
        self.dropout = nn.Dropout(dropout)
        self._ready: Tensor | None = None

    def _scaled(self) -> Tensor:
        if torch.is_grad_enabled():
            self._ready = None  # M may be about to change
            return self.M / self.M.shape[1] ** 0.5
        old = self._ready
        if old is None or old.dtype != self.M.dtype or old.device != self.M.device:
            self._ready = self.M / self.M.shape[1] ** 0.5
        return self._ready

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = queries @ self._scaled() @ keys.mT
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
