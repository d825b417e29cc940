# mistake: not in the catalogue: the rate is rounded down to tenths, so that a rate of 0.25 drops a fifth
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key))
        self.dropout = dropout

    def lottery(self, w: Tensor) -> Tensor:
        tickets = torch.randint(10, w.shape, device=w.device)
        w = w.masked_fill(tickets < int(self.dropout * 10 + 1e-6), 0.0)
        return w if self.dropout == 1 else w / (1 - self.dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scale = keys.shape[-1] ** 0.5
        w = masked_softmax((queries @ self.M) @ keys.mT / scale, valid_lens)
        self.attention_weights = w
        if self.training and self.dropout > 0:
            w = self.lottery(w)
        return w @ values
