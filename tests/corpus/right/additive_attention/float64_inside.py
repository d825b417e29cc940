# right: weights and inputs widened to float64 inside, cast back; works for any mix of dtypes
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = dropout

    @staticmethod
    def _apply_layer(layer: nn.Linear, x: Tensor) -> Tensor:
        return F.linear(x.double(), layer.weight.double())

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q = self._apply_layer(self.W_q, queries)
        k = self._apply_layer(self.W_k, keys)
        pairs = torch.add(q.unsqueeze(2), k.unsqueeze(1)).tanh()
        scores = self._apply_layer(self.w_v, pairs).select(-1, 0)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.to(queries.dtype).detach()
        kept = F.dropout(weights, self.dropout, self.training)
        return torch.bmm(kept, values.double()).to(queries.dtype)
