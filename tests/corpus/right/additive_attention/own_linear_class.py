# right: an own class for a layer without bias, einsum, functional dropout, weights kept with their graph
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


class Matrix(nn.Module):
    """A linear map without bias."""

    def __init__(self, n_in: int, n_out: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) / n_in**0.5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("...i,oi->...o", x, self.weight)


class AdditiveAttention(nn.Module):
    """Attention whose scores are w_v . tanh(W_q q + W_k k)."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = Matrix(d_query, num_hiddens)
        self.W_k = Matrix(d_key, num_hiddens)
        self.w_v = Matrix(num_hiddens, 1)
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q = self.W_q(queries)[:, :, None, :]
        k = self.W_k(keys)[:, None, :, :]
        scores = self.w_v((q + k).tanh())[..., 0]
        self.attention_weights = masked_softmax(scores, valid_lens)
        kept = F.dropout(self.attention_weights, self.rate, self.training)
        return torch.einsum("bqk,bkv->bqv", kept, values)
