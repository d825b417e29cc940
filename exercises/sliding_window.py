r"""# Sliding window attention and ALiBi

In causal attention, token i attends to all i + 1 tokens so far, so work and
memory grow with the square of the length. A window cuts that: token i sees
itself and the window - 1 tokens before it, and no others.

    j = i - window + 1, ..., i        the keys that token i sees

A stack of such layers still passes information on over long distances: in two
layers, it travels twice as far. (Libraries count differently: some count the
tokens on the left alone. Here the window includes the token itself.)

Attention does not know how far away a key is. ALiBi tells it without any
position in the tokens: it lowers a score by a slope times the distance.

    scores[i, j] = Q[i] . K[j] / sqrt(d_head) - slope * (i - j)

Each head has a slope of its own, so that some heads look far and others near.

Write

    alibi_slopes(num_heads)

    returns  (num_heads,), floating point

If num_heads is a power of two, the slope of head h = 1, 2, ..., num_heads is
2 ** (-8 * h / num_heads). If it is not, the first p slopes are those for p
heads, where p is the next lower power of two, and the others are the first,
third, fifth ... of those for 2 * p heads.

    sliding_attention(Q, K, V, window, slopes=None)

    Q, K, V  (batch, num_heads, n_tokens, d_head)
    window   how many tokens a token sees, itself included; at least 1, or
             ValueError. It may be longer than the sequence.
    slopes   (num_heads,), of any floating dtype; None: no bias
    returns  (batch, num_heads, n_tokens, d_head), dtype of Q

Requirements
  - The first tokens see fewer than window tokens: nothing before the sequence
    gets any weight. n_tokens need not be a multiple of window.
  - Memory grows with n_tokens * window, not with the square of n_tokens: no
    table of all pairs is made, and no mask for it.
  - The number of tensor operations does not grow with the batch, the heads or
    the tokens. (It may grow with the window.)
  - Scores of any size, such as 1e4 and -1e4, give right numbers.
  - Gradients reach Q, K, V and slopes.
  - The dtype may be float64, float32 or bfloat16. Arguments may be views, such
    as transposed tensors, and are not modified.
  - torch's attention functions are not allowed.

Example (Q and K are zeros, so without slopes all keys in sight count the same;
4 decimals)

    V                = [[0.], [1.], [2.], [3.], [4.]]      one head, window 3

    without slopes     [[0.], [0.5], [1.], [2.], [3.]]
    slopes = [ln 2]    [[0.], [0.6667], [1.4286], [2.4286], [3.4286]]

    alibi_slopes(4)  = [0.25, 0.0625, 0.0156, 0.0039]
    alibi_slopes(6)  = [0.25, 0.0625, 0.0156, 0.0039, 0.5, 0.125]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, nn.attention, flex_attention, flash_attention.

What is new: Work and memory that grow with the length, not its square, and
order from distances alone.

From: Mistral 7B (2023)
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def alibi_slopes(num_heads: int) -> Tensor:
    """Return by how much each head's scores fall from one token to the one before it.

    returns  (num_heads,), floating point
    """
    raise NotImplementedError("fill in sliding_window")


def sliding_attention(
    Q: Tensor, K: Tensor, V: Tensor, window: int, slopes: Tensor | None = None
) -> Tensor:
    """Attend from each token to itself and the window - 1 tokens before it.

    Q, K, V  (batch, num_heads, n_tokens, d_head)
    slopes   (num_heads,), for a score that falls with the distance; None for no bias
    returns  (batch, num_heads, n_tokens, d_head)

    Raises ValueError for a window below 1.
    """
    raise NotImplementedError("fill in sliding_window")
