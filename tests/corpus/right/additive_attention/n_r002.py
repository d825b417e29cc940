# style: unusual
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Attention whose scores are w_v . tanh(W_q q + W_k k)."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self._drop = nn.Dropout(dropout)
        self._last: Tensor | None = None

    @property
    def attention_weights(self) -> Tensor | None:
        """Weights of the latest call (before dropout)."""
        return self._last

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        batch, n_queries = queries.shape[:2]
        n_keys = keys.shape[1]
        hidden_size = self.W_q.out_features

        q = self.W_q(queries).unsqueeze(2).expand(batch, n_queries, n_keys, hidden_size)
        k = self.W_k(keys).unsqueeze(1).expand(batch, n_queries, n_keys, hidden_size)
        scores = self.w_v((q + k).tanh()).view(batch, n_queries, n_keys)

        weights = masked_softmax(scores, valid_lens)
        self._last = weights.detach()
        return self._drop(weights).bmm(values)
