r"""# Scaled dot-product attention

Queries and keys are compared by dot products. The queries need not come from
the same sequence as the keys, so there may be more of one than of the other,
and sequences in a batch differ in length. The weights are kept, so that one
can look at them.

    scores[b, i, j] = queries[b, i] . keys[b, j] / sqrt(d_key)
    weights         = masked_softmax(scores, valid_lens)
    output          = dropout(weights) values

`masked_softmax` is yours, from that exercise: this file imports it, so finish
it first. Where marks are given, a right one takes its place, so a mistake in
yours costs nothing here.

Write the function

    batched_product(a, b)

    a        (batch, n, m)
    b        (batch, m, p)
    returns  (batch, n, p)    the matrix product of a[i] and b[i] for each i

and the class

    DotProductAttention(dropout)

    forward(queries, keys, values, valid_lens=None)

    queries     (batch, n_queries, d_key)
    keys        (batch, n_keys, d_key)
    values      (batch, n_keys, d_value)
    valid_lens  None, (batch,) or (batch, n_queries), as in masked_softmax, here
                always whole numbers
    returns     (batch, n_queries, d_value)

Requirements
  - batched_product refuses tensors of any other shapes: if the sizes of the
    batches or the two m differ, or if a tensor does not have three axes, it
    raises ValueError. A batch of size 1 is not repeated.
  - d_key, d_value, n_queries, n_keys and the size of the batch are taken from
    the arguments of each call. Each may be any number from 1 on.
  - Scores of any size, such as 1e5 or -1e5, give the weights of the formula.
  - dropout is the rate, from 0 to 1, at which weights are dropped in training;
    the remaining weights are divided by 1 - dropout. Dropout is applied to the
    weights after the softmax and to nothing else. In eval mode nothing is
    dropped.
  - After a call, `attention_weights` holds its weights before dropout, (batch,
    n_queries, n_keys), in training and in eval mode. They may be detached.
  - A query of length 0 has nothing to attend to: its output is zeros. A length
    greater than n_keys, or a valid_lens of any other shape, is refused, as by
    masked_softmax.
  - If a key is padded for every query of its batch item, its value has no
    effect on the output, even if it is nan or inf. If every query gives a key
    some weight, a nan in its value is not hidden: it makes the output nan.
  - The module has no parameters. The output has the dtype of the arguments,
    for example bfloat16.
  - The arguments may be views, such as transposed tensors, and are not
    modified. Gradients reach queries, keys and values.
  - No Python loop runs over batch, queries or keys.

Example

    queries = tensor([[[2., 0., 0., 0.]]])
    keys    = tensor([[[1., 0., 0., 0.], [0., 1., 0., 0.], [9., 0., 0., 0.]]])
    values  = tensor([[[10., 0.], [0., 10.], [nan, nan]]])

d_key is 4, so the products 2, 0, 18 are divided by 2. With valid_lens =
tensor([2]), the third key is padding:

    scores   1.0000  0.0000  9.0000
    weights  0.7311  0.2689  0.0000
    output   7.3106  2.6894

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, nn.attention.

What is new: The scale, batches of padded sequences, dropout on the weights,
and weights that are kept to look at.

From: Attention Is All You Need (2017)
"""

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of each item of a with the same item of b.

    a is (batch, n, m), b is (batch, m, p), the product is (batch, n, p). Raises ValueError for
    any other shapes.
    """
    raise NotImplementedError("fill in scaled_dot_product_attention")


class DotProductAttention(nn.Module):
    """Attention whose scores are dot products of queries and keys, scaled by their size.

    dropout is the rate at which weights are dropped in training. After a call, attention_weights
    holds its weights as they were before dropout.
    """

    def __init__(self, dropout: float) -> None:
        super().__init__()
        raise NotImplementedError("fill in scaled_dot_product_attention")

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return each query's weighted sum of the values, (batch, n_queries, d_value).

        queries is (batch, n_queries, d_key), keys is (batch, n_keys, d_key), values is (batch,
        n_keys, d_value); valid_lens is None, (batch,) or (batch, n_queries).
        """
        raise NotImplementedError("fill in scaled_dot_product_attention")
