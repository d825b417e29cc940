# style: unusual
r"""# Additive attention

A dot product needs queries and keys of the same size. Additive attention does
not: a small network with one hidden layer scores each pair of a query q and a
key k.

    score(q, k) = w_v . tanh(W_q q + W_k k)
    weights     = softmax of the scores over the valid keys
    output      = weights @ values

Write

    AdditiveAttention(d_query, d_key, num_hiddens, dropout)

    queries     (batch, n_queries, d_query)
    keys        (batch, n_keys, d_key)
    values      (batch, n_keys, d_value)
    valid_lens  None, (batch,) or (batch, n_queries), as in masked_softmax
    returns     (batch, n_queries, d_value)   dtype of the inputs

and its three linear layers, all without bias:

    W_q.weight  (num_hiddens, d_query)
    W_k.weight  (num_hiddens, d_key)
    w_v.weight  (1, num_hiddens)

What counts is the names and shapes of the parameters. They may start with any
numbers.

The weights come from your masked_softmax, which the file imports: finish it
first.

Requirements
  - n_queries, n_keys and all sizes of vectors may differ, or be 1. Only the
    batch and n_keys must fit. The scores are not scaled.
  - valid_lens says how many keys a query may attend to. What stands in the
    other keys and values has no effect, as long as it is finite and nothing
    overflows. A query with length 0 has the output zeros, and gradients stay
    finite.
  - After a call, attention_weights holds its weights, before dropout and
    detached or not: (batch, n_queries, n_keys).
  - Dropout acts on the weights, in training mode only: each weight becomes 0
    with the probability dropout, or is divided by 1 - dropout.
  - Gradients reach the inputs and the three layers.
  - The inputs have the dtype of the module: float32, or another one after a
    call such as module.to(torch.bfloat16).
  - The inputs are not modified, and may be views, such as transposed tensors.
  - No Python loop runs over batch, queries or keys.

Example

    W_q.weight = [[1.], [-1.]]
    W_k.weight = [[1., 0.], [0., 1.]]
    w_v.weight = [[1., 1.]]

    queries = [[[1.], [-2.]]]
    keys    = [[[0., 1.], [1., 0.], [2., 2.]]]
    values  = [[[1., 0.], [0., 1.], [5., 5.]]]

    scores  = [[[0.7616, 0.2024, 1.7566], [0.0310, 0.2024, 0.9993]]]
    weights = [[[0.2338, 0.1337, 0.6325], [0.2074, 0.2462, 0.5463]]]
    output  = [[[3.3963, 3.2961], [2.9390, 2.9778]]]

    with valid_lens = [2]
    weights = [[[0.6363, 0.3637, 0.0000], [0.4573, 0.5427, 0.0000]]]
    output  = [[[0.6363, 0.3637], [0.4573, 0.5427]]]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product_attention, MultiheadAttention,
multi_head_attention_forward.

What is new: Scores from a small network, for queries and keys of different
sizes.

From: Neural Machine Translation by Jointly Learning to Align and Translate
(2014)
"""

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
