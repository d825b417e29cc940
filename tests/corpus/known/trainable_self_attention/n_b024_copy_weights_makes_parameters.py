# mistake: storage_shared
r"""# Trainable self-attention

In plain self-attention, a token is its own query, key and value, so nothing
can be learned. Now three matrices turn each token into a query (what it looks
for), a key (what it is found by) and a value (what it passes on):

    queries = x W_query      keys = x W_key      values = x W_value

    scores  = queries keys^T / sqrt(d_out)
    weights = softmax(scores)     over the keys
    output  = weights values

The scores are divided by the square root of d_out, the size of a query and of
a key. You write the projections twice, once with plain parameters and once
with linear layers, and then carry the weights over from one to the other. For
what both share there is a function `scaled_attention` in the stub, which you
may use or delete.

Write the classes

    SelfAttentionV1(d_in, d_out)
    SelfAttentionV2(d_in, d_out, qkv_bias=False)

    forward(x)     x (..., n_tokens, d_in) -> (..., n_tokens, d_out)

  - In V1, W_query, W_key and W_value are parameters (nn.Parameter) of shape
    (d_in, d_out). They start with random numbers, uniform in [0, 1), as
    torch.rand gives them.
  - In V2, W_query, W_key and W_value are nn.Linear layers from d_in to d_out.
    They have a bias only if qkv_bias is True.
  - Neither has other parameters. Create the three in this order if you want
    to see the numbers below.

and the function

    copy_weights(source_v2, target_v1)

It copies the weights of a V2 into a V1 of the same sizes. Afterwards both give
the same outputs.

  - nn.Linear computes x weight^T: its weight has the shape (d_out, d_in).
  - It is a copy: when one module changes later, the other does not.
  - The source does not change. The target can still be trained: its weights
    are its three parameters, old or new ones, and are no part of the source's
    graph.
  - V1 has no biases, so a source with a bias is refused: ValueError.
  - What it returns does not matter.

Requirements
  - The leading axes ... may be none, one or several. There may be one token
    and one output feature.
  - Scores of any size give finite results.
  - The output has the dtype of the module and of x: float64, float32 or
    bfloat16. module.to(dtype) is enough to convert the module.
  - Gradients reach x and all parameters.
  - x may be a view, such as a transposed tensor, and is not modified.
  - No Python loop runs over leading axes or tokens.

Example

    x = tensor([[0.43, 0.15, 0.89],
                [0.55, 0.87, 0.66],
                [0.57, 0.85, 0.64],
                [0.22, 0.58, 0.33],
                [0.77, 0.25, 0.10],
                [0.05, 0.80, 0.55]])

After torch.manual_seed(123), SelfAttentionV1(3, 2) computes for the second
token

    queries keys^T   1.2705  1.8524  1.8111  1.0795  0.5577  1.5440
    weights          0.1500  0.2264  0.2199  0.1311  0.0906  0.1820
    output           0.3061  0.8210

and after torch.manual_seed(789), SelfAttentionV2(3, 2) computes

    weights          0.2041  0.1659  0.1662  0.1496  0.1665  0.1477
    output          -0.0748  0.0703

With the weights of that V2, a V1 gives the same output.

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, transformer,
Transformer, nn.attention.

What is new: Queries, keys and values come from three learned projections,
and scores are scaled.

From: Attention Is All You Need (2017)
"""

import math

import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Return the values, weighted by how well their keys match each query."""
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ values


class SelfAttentionV1(nn.Module):
    """Self-attention whose projections are plain parameters of shape (d_in, d_out)."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., n_tokens, d_in) to (..., n_tokens, d_out)."""
        return scaled_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


class SelfAttentionV2(nn.Module):
    """Self-attention whose projections are linear layers from d_in to d_out."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., n_tokens, d_in) to (..., n_tokens, d_out)."""
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    """Copy the weights of `source_v2` into `target_v1`, so that both give the same outputs."""
    if source_v2.W_query.bias is not None:
        raise ValueError("the source has biases")
    target_v1.W_query = nn.Parameter(source_v2.W_query.weight.detach().T)
    target_v1.W_key = nn.Parameter(source_v2.W_key.weight.detach().T)
    target_v1.W_value = nn.Parameter(source_v2.W_value.weight.detach().T)
