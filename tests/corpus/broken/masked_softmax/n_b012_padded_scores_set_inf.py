# promise: Padded scores are set to -1e6 instead of -inf, so with valid scores such as -1e7 the padding gets the weight.
r"""# Masked softmax

Sentences in a batch differ in length, so the short ones are padded. A query
must not attend to padding: the weight of every padded key must be exactly 0,
and the weights of the real keys must sum to 1.

    weights[b, i, j] = exp(X[b, i, j]) / sum over valid k of exp(X[b, i, k])
                       if key j is valid for query i, else 0

Write

    masked_softmax(X, valid_lens)

    X           (batch, n_queries, n_keys)   scores, any floating dtype
    valid_lens  None                          every key is valid
                (batch,)                      one length per batch item
                (batch, n_queries)            one length per query
    returns     (batch, n_queries, n_keys)   weights, dtype of X

Key j is valid for a query if j is less than the query's length. Lengths may
be integers or floats; with length 2.5, the keys 0, 1 and 2 are valid.

Requirements
  - Length 0: the row has nothing to attend to. Its weights are zeros (not nan,
    not uniform), and gradients stay finite.
  - Scores of any size, such as 1e4 or -1e7, give finite weights. The score of
    a padded key has no effect, however large it is.
  - A length greater than n_keys, or a valid_lens of any other shape, is
    refused: the function raises ValueError.
  - X and valid_lens are not modified. Both may be views, such as transposed
    tensors.
  - No Python loop runs over batch, queries or keys.

Example

    X = tensor([[[1., 2., 3.]]]), valid_lens = tensor([2])
    weights = tensor([[[0.2689, 0.7311, 0.0000]]])

Write it by hand. These names of torch are not accepted here:
masked.softmax, _masked_softmax, scaled_dot_product.

What is new: Sequences of different lengths in one batch: padding gets no
weight.

From: Attention Is All You Need (2017)
"""

import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for every key at or beyond the valid length.

    X is (batch, n_queries, n_keys); valid_lens is None, (batch,) or (batch, n_queries).
    The weights have the shape and dtype of X. Raises ValueError for lengths that do not fit.
    """
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    n_keys = X.shape[2]
    if valid_lens.shape != X.shape[:1] and valid_lens.shape != X.shape[:2]:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if (valid_lens > n_keys).any():
        raise ValueError("valid_lens must be at most n_keys")
    lens = valid_lens[:, None, None] if valid_lens.dim() == 1 else valid_lens[:, :, None]
    padded = torch.arange(n_keys, device=X.device) >= lens
    very_small = -1e4 if X.dtype == torch.float16 else -1e6
    scores = torch.where(padded, very_small, X)
    weights = torch.softmax(scores, dim=-1)
    empty = padded.all(dim=-1, keepdim=True)
    return weights.masked_fill(empty, 0)
