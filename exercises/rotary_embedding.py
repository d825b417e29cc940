r"""# Rotary position embedding

Instead of adding an encoding to the tokens, rotary embedding turns the queries
and the keys. Their columns are taken in pairs, each pair is a point in a plane,
and the token's position says by which angle it is turned. A product of a query
at position m and a key at position n then depends on m - n alone.

    angle(p, i) = p / base^(2i / d_head)      for the pairs i = 0, 1, ...

    (a, b)  ->  (a cos - b sin, a sin + b cos)    each pair, by its angle

Write

    rotate(x, positions, base=10000.0, interleaved=True)

    x            (..., n_tokens, num_heads, d_head)   queries or keys
    positions    (n_tokens,)                          of any number type
    interleaved  True: pair i is the columns 2i and 2i + 1.
                 False: pair i is the columns i and i + d_head / 2.
    returns      the shape and dtype of x; a pair stays in its columns

    rotary_attention(queries, keys, values, positions)

    queries    (..., n_tokens, num_heads, d_head)
    keys       (..., n_tokens, num_heads, d_head)
    values     (..., n_tokens, num_heads, d_value)
    positions  (n_tokens,)
    returns    (..., n_tokens, num_heads, d_value)   dtype of the inputs

In each head, every token attends to all tokens by its rotated query and their
rotated keys, with scores divided by sqrt(d_head). Pairs are interleaved and
the base is 10000. Values are not rotated.

Requirements
  - All heads of a token are turned by the same angles.
  - Positions may be any numbers in any order: not from 0 on, large (some
    thousands), negative, with a fraction. Position 0 changes nothing.
  - Angles are computed in float32 or float64, also for an x in half precision,
    which has too few digits for large positions.
  - An odd d_head is refused, and so are positions of another number than
    n_tokens: both functions raise ValueError.
  - Leading axes ... may be none, one or several. All sizes may be 1, but for
    d_head.
  - Scores of any size give finite results.
  - Gradients reach x, queries, keys and values.
  - Inputs may be views, such as transposed tensors, and are not modified.
  - No Python loop runs over any axis.

Example

For three tokens with one head each, x = [1., 0., 1., 0.] at positions 0, 1, 2
and base=100.0 gives

    interleaved=True                     interleaved=False
     1.0000  0.0000  1.0000  0.0000       1.0000  0.0000  1.0000  0.0000
     0.5403  0.8415  0.9950  0.0998      -0.3012  0.0000  1.3818  0.0000
    -0.4161  0.9093  0.9801  0.1987      -1.3254  0.0000  0.4932  0.0000

Attention of three tokens with the query and key [2., 0.] each, and the values
[1., 0.], [0., 1.], [5., 5.]:

    positions = tensor([0, 1, 2])

    scores  = [[ 2.8284, 1.5282, -1.1770],
               [ 1.5282, 2.8284,  1.5282],
               [-1.1770, 1.5282,  2.8284]]
    output  = [[0.8453, 0.2817], [1.0582, 1.5291], [3.8880, 4.0850]]

The same comes out at the positions 7, 8, 9.

Write it by hand. These names of torch are not accepted here:
scaled_dot_product_attention, MultiheadAttention,
multi_head_attention_forward.

What is new: Positions inside the scores: only the distance of two tokens
counts.

From: RoFormer: Enhanced Transformer with Rotary Position Embedding (2021)
"""

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    """Turn each pair of columns of x by an angle that grows with the token's position.

    x            (..., n_tokens, num_heads, d_head)
    positions    (n_tokens,)
    interleaved  whether a pair is two columns side by side, or one of each half
    returns      the shape and dtype of x

    Raises ValueError for an odd d_head, and for positions of another number than n_tokens.
    """
    raise NotImplementedError("fill in rotary_embedding")


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return what each head of each token attends to, where rotated queries meet rotated keys.

    queries    (..., n_tokens, num_heads, d_head)
    keys       (..., n_tokens, num_heads, d_head)
    values     (..., n_tokens, num_heads, d_value)
    positions  (n_tokens,)
    returns    (..., n_tokens, num_heads, d_value)
    """
    raise NotImplementedError("fill in rotary_embedding")
