# mistake: heads_in_reverse + split_in_reverse
r"""# Stacked heads

One attention looks at a sentence in one way. Several heads look at it in
several ways at once: each one is a causal attention with weights of its own,
all read the same x, and their outputs are joined along the features.

    output[b, i] = [ head_0(x)[b, i] | head_1(x)[b, i] | ... ]

Write the class

    StackedHeads(d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False)

an nn.Module made of your own CausalAttention:

    heads        nn.ModuleList of num_heads modules, each of them a
                 CausalAttention(d_in, d_out, context_length, dropout,
                 qkv_bias)

    forward(x)
    x            (batch, n_tokens, d_in)
    returns      (batch, n_tokens, num_heads * d_out)     dtype of x

d_out is the size of each head, not of all together. Head i gives the columns
i*d_out to (i+1)*d_out - 1. There are no other parameters, so their names are
heads.0.W_query.weight, heads.0.W_key.weight, ... heads.1.W_query.weight ...
Each head starts with random weights of its own, and nothing is dropped but
what the heads drop. Create the heads in order if you want to see the numbers
below.

and the function

    split_weights(stacked)

    returns      a tuple (W_query, W_key, W_value) of tensors, each of shape
                 (num_heads * d_out, d_in)

These are the weights of three linear layers that compute the queries, keys and
values of all heads at once: the columns i*d_out to (i+1)*d_out - 1 of

    x W_query^T      x W_key^T      x W_value^T

are those of head i. Multi-head attention is built in this way: one projection
for all heads, which is split afterwards. Three matrices have no room for
biases, so a module that was made with qkv_bias=True is refused: ValueError.
The module does not change, nor does its mode. The matrices may be copies or
the module's own numbers, with or without a graph.

Requirements
  - num_heads may be 1, and d_out may be 1. There may be one sentence, and
    there may be one token. context_length tokens are accepted; for more, the
    heads raise their ValueError.
  - module.to(dtype) is enough to convert the module, for example to bfloat16.
    The output and the three matrices have the module's dtype.
  - Gradients reach x and all parameters.
  - x may be a view, such as a transposed tensor, and is not modified.
  - No Python loop runs over batch or tokens. A loop over the heads is right
    here.

Only what you write here decides your mark: where it is given, the grader
replaces CausalAttention by a correct one with the same interface, so a
mistake in the earlier exercise does not cost you points again. So of a head,
use only what its task states: the call, and the layers W_query, W_key and
W_value. In your own copy, your CausalAttention takes part: finish it first.

Example

    x = tensor([[0.43, 0.15, 0.89],
                [0.55, 0.87, 0.66],
                [0.57, 0.85, 0.64],
                [0.22, 0.58, 0.33],
                [0.77, 0.25, 0.10],
                [0.05, 0.80, 0.55]])
    batch = torch.stack([x, x])                           # (2, 6, 3)

After torch.manual_seed(123), StackedHeads(3, 2, 6, 0.0, 2)(batch) has the
shape (2, 6, 4). For each of the two sentences, it is

    token 1  -0.4519   0.2216   0.4772   0.1063
    token 2  -0.5874   0.0058   0.5891   0.3257
    token 3  -0.6300  -0.0632   0.6202   0.3860
    ...
    token 6  -0.5299  -0.1081   0.5077   0.3493

The first two columns are the output of CausalAttention(3, 2, 6, 0.0) after the
same seed: they are the first head. split_weights gives three matrices of shape
(4, 3); the first rows of W_query and W_value are

    W_query  -0.2354   0.0191  -0.2867
    W_value  -0.4900  -0.3503  -0.2120

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, nn.attention.

What is new: Several heads attend side by side, each with a causal attention
of its own.

From: Attention Is All You Need (2017)
"""

import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
    """Several causal attentions of size d_out each, whose outputs are joined along the features."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.d_out = d_out
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, num_heads * d_out)."""
        joined = x.new_empty(x.shape[0], x.shape[1], 0)
        for head in self.heads:
            joined = torch.cat([head(x), joined], dim=-1)
        return joined


def _collect(stacked: StackedHeads, name: str) -> Tensor:
    rows = None
    for head in stacked.heads:
        layer = getattr(head, name)
        if layer.bias is not None:
            raise ValueError(f"{name} has a bias")
        rows = layer.weight if rows is None else torch.cat([layer.weight, rows], dim=0)
    return rows


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    """Return W_query, W_key and W_value of all heads, (num_heads * d_out, d_in) each."""
    return _collect(stacked, "W_query"), _collect(stacked, "W_key"), _collect(stacked, "W_value")
