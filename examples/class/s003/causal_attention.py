r"""# Causal attention

A model that generates text one token at a time may look back, but never ahead.
Every token gets a query, a key and a value, each from its own linear layer,
and attends to itself and to the tokens before it.

    queries, keys, values = W_query(x), W_key(x), W_value(x)

    scores[b, i, j]  = queries[b, i] . keys[b, j] / sqrt(d_out)
    weights[b, i, j] = softmax of scores[b, i, :] over the keys j <= i;
                       0 for j > i
    output           = dropout(weights) values

Write the class

    CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=False)

    forward(x)     x (batch, n_tokens, d_in) -> (batch, n_tokens, d_out)

Parts
  - W_query, W_key and W_value are nn.Linear layers from d_in to d_out; they
    have a bias only if qkv_bias is True. The module has no other parameters.
    Create them in this order if you want to see the numbers below.
  - The mask is no parameter, and follows the module to another dtype or
    device. One way is a buffer (register_buffer) of shape (context_length,
    context_length); another is to make the mask in forward, where x is.
  - dropout is the rate, from 0 to 1, at which weights are dropped in training;
    the remaining weights are divided by 1 - dropout. Dropout is applied to the weights after
    the softmax and to nothing else. In eval mode nothing is dropped.

Requirements
  - n_tokens may be anything from 1 to context_length. For more tokens, forward
    raises an exception such as ValueError, also if context_length is 1, where
    a mask of one number would be broadcast. The batch may have any size.
  - The first token attends only to itself: its output is its own value.
  - Changing a later token, by any amount, changes no earlier output. Scores of
    any size give finite results.
  - If the module and x have the same dtype, the output has it too, for example
    bfloat16. module.to(dtype) is enough to convert the module.
  - x may be a view, such as a transposed tensor, and is not modified.
  - Gradients reach x and all parameters, in training and in eval mode.
  - No Python loop runs over batch or tokens.

Example

    x = tensor([[[0.43, 0.15, 0.89],
                 [0.55, 0.87, 0.66],
                 [0.57, 0.85, 0.64],
                 [0.22, 0.58, 0.33],
                 [0.77, 0.25, 0.10],
                 [0.05, 0.80, 0.55]]])

First without learned layers, mask or scale: the tokens themselves are the
queries, keys and values. For the second token,

    scores   0.9544  1.4950  1.4754  0.8434  0.7070  1.0865
    weights  0.1385  0.2379  0.2333  0.1240  0.1082  0.1581
    output   0.4419  0.6515  0.5683

Now the whole module: after torch.manual_seed(789), CausalAttention(3, 2, 6,
0.0) computes these weights for x

    token 1  1.0000  0       0       0       0       0
    token 2  0.5517  0.4483  0       0       0       0
    token 3  0.3800  0.3097  0.3103  0       0       0
    ...
    token 6  0.1935  0.1663  0.1666  0.1542  0.1666  0.1529

and after torch.manual_seed(123) it computes these outputs

    token 1  -0.4519   0.2216
    token 2  -0.5874   0.0058
    token 3  -0.6300  -0.0632
    ...
    token 6  -0.5299  -0.1081

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, nn.attention.

What is new: No token sees those that come after it.

From: Attention Is All You Need (2017)
"""

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Attention in which each token attends to itself and the tokens before it.

    d_in and d_out are the sizes of a token's input and output vector; context_length is the
    largest number of tokens; dropout is the rate at which attention weights are dropped.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        raise NotImplementedError("fill in causal_attention")

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out).

        Raises ValueError for more tokens than context_length.
        """
        raise NotImplementedError("fill in causal_attention")
