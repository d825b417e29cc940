# right: each pair of query and key is one row of a table, weights of the layers are used directly, mask by Bernoulli numbers
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Attention whose scores are w_v . tanh(W_q q + W_k k)."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        sizes = {"W_q": (d_query, num_hiddens), "W_k": (d_key, num_hiddens), "w_v": (num_hiddens, 1)}
        for name, (n_in, n_out) in sizes.items():
            self.add_module(name, nn.Linear(n_in, n_out, bias=False))
        self.keep = 1.0 - dropout

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        (batch, n_queries, d_query), (n_keys, d_key) = queries.shape, keys.shape[1:]
        size = (batch, n_queries, n_keys)
        left = queries.unsqueeze(2).expand(*size, d_query)
        right = keys.unsqueeze(1).expand(*size, d_key)
        pairs = torch.cat([left, right], dim=3).flatten(0, 2)
        both = torch.cat([self.W_q.weight, self.W_k.weight], dim=1)
        return (torch.tanh(pairs @ both.T) @ self.w_v.weight.T).reshape(size)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(self.scores(queries, keys), valid_lens)
        self.attention_weights = weights.detach().clone()
        if self.training:
            chance = torch.full(weights.shape, self.keep, dtype=torch.float32, device=weights.device)
            mask = torch.bernoulli(chance).to(weights.dtype)
            weights = weights * mask / (self.keep or 1.0)
        return weights @ values
