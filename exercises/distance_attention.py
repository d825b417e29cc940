r"""# Distance attention

A query can attend to the keys that are near to it: the smaller the distance,
the higher the score.

    score(q, k) = -|q - k|^2 / 2
    weights     = softmax of the scores over the valid keys
    output      = weights @ values

The difference of every query and every key would be a tensor with n_queries *
n_keys * d numbers. Expanding the square avoids it:

    -|q - k|^2 / 2 = q . k - |k|^2 / 2 - |q|^2 / 2

The last term is the same for all keys of a query. The softmax over the keys
does not change without it, so the module may use the scores of either function
below. That long vectors lose digits in the expanded square does not matter.

Write

    distance_scores(queries, keys)            -|q - k|^2 / 2
    scores_without_query_norm(queries, keys)  q . k - |k|^2 / 2

    queries     (batch, n_queries, d)
    keys        (batch, n_keys, d)
    returns     (batch, n_queries, n_keys)    dtype of the inputs

    DistanceAttention(dropout)

    queries     (batch, n_queries, d)
    keys        (batch, n_keys, d)
    values      (batch, n_keys, d_value)
    valid_lens  None, (batch,) or (batch, n_queries), as in masked_softmax,
                from 0 to n_keys
    returns     (batch, n_queries, d_value)   dtype of the inputs

The weights come from your masked_softmax, which the file imports: finish it
first.

Requirements
  - None of the three makes a tensor of n_queries * n_keys * d numbers for each
    batch item, if d is larger than 4, nor several tensors that are as large
    together. Expanded views do not count.
  - n_queries, n_keys, d and d_value may differ, or be 1.
  - valid_lens says how many keys a query may attend to. What stands in the
    other keys and values has no effect, as long as it is finite and nothing
    overflows. A query with length 0 has the output zeros, and gradients stay
    finite.
  - After a call, attention_weights holds its weights, before dropout and
    detached or not: (batch, n_queries, n_keys).
  - Dropout acts on the weights, in training mode only: each weight becomes 0
    with the probability dropout, from 0 to 1, or is divided by 1 - dropout.
  - Gradients reach the inputs of all three. The module has no parameters.
  - The inputs are not modified, and may be views, such as transposed tensors.
  - No Python loop runs over batch, queries or keys.

Example

    queries = [[[0., 0.], [2., 1.]]]
    keys    = [[[1., 0.], [0., 2.], [2., 2.]]]
    values  = [[[1., 0.], [0., 1.], [5., 5.]]]

    distance_scores           = [[[-0.5, -2.0, -4.0], [-1.0, -2.5, -0.5]]]
    scores_without_query_norm = [[[-0.5, -2.0, -4.0], [ 1.5,  0.0,  2.0]]]

    weights = [[[0.7979, 0.1780, 0.0241], [0.3482, 0.0777, 0.5741]]]
    output  = [[[0.9183, 0.2985], [3.2187, 2.9482]]]

    with valid_lens = [2]
    weights = [[[0.8176, 0.1824, 0.0000], [0.8176, 0.1824, 0.0000]]]
    output  = [[[0.8176, 0.1824], [0.8176, 0.1824]]]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product_attention, MultiheadAttention,
multi_head_attention_forward, cdist, _cdist_forward, _euclidean_dist,
pairwise_distance, PairwiseDistance.

What is new: Distances as scores, computed as a product, without a tensor of
all differences.

From: On Estimating Regression (1964)
"""

from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return minus half of the squared distance of each query to each key.

    queries  (batch, n_queries, d)
    keys     (batch, n_keys, d)
    returns  (batch, n_queries, n_keys)
    """
    raise NotImplementedError("fill in distance_attention")


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """Return q . k - |k|^2 / 2 for each query and key: scores with the same softmax.

    queries  (batch, n_queries, d)
    keys     (batch, n_keys, d)
    returns  (batch, n_queries, n_keys)
    """
    raise NotImplementedError("fill in distance_attention")


class DistanceAttention(nn.Module):
    """Attention whose scores are -|q - k|^2 / 2. It has no parameters."""

    def __init__(self, dropout: float):
        super().__init__()
        raise NotImplementedError("fill in distance_attention")

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return the weighted mean of the values for each query.

        queries     (batch, n_queries, d)
        keys        (batch, n_keys, d)
        values      (batch, n_keys, d_value)
        valid_lens  None, (batch,) or (batch, n_queries)
        returns     (batch, n_queries, d_value)
        """
        raise NotImplementedError("fill in distance_attention")
