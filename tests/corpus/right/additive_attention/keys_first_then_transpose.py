# note: scores are laid out keys first and turned by movedim, the weights are a property, dropout is a functional keep mask via nn.Dropout built lazily in a dict
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        sizes = {"W_k": (d_key, num_hiddens), "W_q": (d_query, num_hiddens), "w_v": (num_hiddens, 1)}
        for name, (n_in, n_out) in sizes.items():
            self.add_module(name, nn.Linear(n_in, n_out, bias=False))
        self.drop = nn.Dropout(p=dropout)
        self._last = []

    @property
    def attention_weights(self) -> Tensor:
        return self._last[-1]

    def score(self, q: Tensor, k: Tensor) -> Tensor:
        total = self.W_k(k).unsqueeze(2) + self.W_q(q).unsqueeze(1)  # b, k, q, h
        return self.w_v(total.tanh())[..., 0].movedim(1, 2)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(self.score(queries, keys), valid_lens)
        self._last[:] = [weights]
        return torch.bmm(self.drop(weights), values)
