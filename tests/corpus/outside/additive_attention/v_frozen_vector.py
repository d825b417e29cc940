# mistake: not in the catalogue: w_v is frozen with requires_grad_(False), so it gets no gradient
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        linear = lambda n_in, n_out: nn.Linear(n_in, n_out, bias=False)
        self.W_q, self.W_k = linear(d_query, num_hiddens), linear(d_key, num_hiddens)
        self.w_v = linear(num_hiddens, 1).requires_grad_(False)
        self.p = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q, k = self.W_q(queries), self.W_k(keys)
        grid = torch.tanh(q[:, :, None, :] + k[:, None, :, :])
        w = masked_softmax(self.w_v(grid).squeeze(3), valid_lens)
        self.attention_weights = w
        if self.training:
            off = torch.bernoulli(torch.full(w.shape, float(self.p), device=w.device)).bool()
            w = w.masked_fill(off, 0.0)
            w = w / (1 - self.p) if self.p < 1 else w
        return w @ values
