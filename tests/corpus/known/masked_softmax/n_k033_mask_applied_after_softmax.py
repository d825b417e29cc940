# mistake: masked_after_softmax
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
    weights = torch.softmax(X, dim=-1)
    if valid_lens is None:
        return weights

    B, Q, K = X.shape
    if valid_lens.dim() == 1 and valid_lens.shape[0] == B:
        lens = valid_lens.view(B, 1, 1) if valid_lens.is_contiguous() else valid_lens.reshape(B, 1, 1)
    elif valid_lens.dim() == 2 and valid_lens.shape == (B, Q):
        lens = valid_lens.unsqueeze(-1)
    else:
        raise ValueError(f"valid_lens has shape {tuple(valid_lens.shape)}")
    if lens.max() > K:
        raise ValueError("length greater than n_keys")

    padding = torch.arange(K, device=X.device).view(1, 1, K) >= lens
    return weights.masked_fill(padding, 0.0)
