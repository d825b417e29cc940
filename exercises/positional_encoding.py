r"""# Positional encoding

Attention without a mask does not see the order of the tokens: if the tokens
are permuted, its outputs are permuted in the same way and are otherwise the
same. An encoding that is added to the tokens tells it where each one stands.
The sinusoidal encoding gives each position p a pattern of waves, of which each
pair of columns 2i and 2i + 1 has its own length:

    angle(p, i)           = p / base^(2i / d_model)
    encoding[p, 2i]       = sin(angle(p, i))
    encoding[p, 2i + 1]   = cos(angle(p, i))

Each pair is a point on a circle. A step of k positions turns it by the angle
k / base^(2i / d_model), wherever the step begins, so that a linear layer can
learn to look k tokens back.

Write

    sinusoidal(context_length, d_model, base=10000.0)

    returns  (context_length, d_model)   float32, for positions from 0

    PositionalEncoding(d_model, context_length, dropout=0.0)

    x        (batch, n_tokens, d_model)
    returns  (batch, n_tokens, d_model)  dropout(x + the first n_tokens rows of
                                         sinusoidal(context_length, d_model))

    permutation_gap(block, x, permutation)

    block        a module or function that maps (batch, n_tokens, d_model) to
                 the same shape
    x            (batch, n_tokens, d_model)
    permutation  (n_tokens,)             the token at place i of the permuted
                                         sequence is x[:, permutation[i]]
    returns      a number, as a float or as a tensor without axes: the largest
                 absolute difference between the block's output for the
                 permuted x and its permuted output for x

Requirements
  - d_model may be odd: the last column is a sine. All sizes may be 1.
  - Dropout acts in training mode only, on the sum: each number of x + encoding
    becomes 0 with the probability dropout, from 0 to 1, or is divided by 1 -
    dropout.
  - The encoding is not trained and not saved: the module has no parameters,
    and its state_dict is empty. It moves to another device with the module.
  - More tokens than context_length are refused: the module raises ValueError.
  - Gradients reach x.
  - x has the dtype of the module: float32, or another one after a call such as
    module.to(torch.bfloat16). The output has it too, and is exact but for its
    rounding: angles of large positions are not computed in half precision.
  - x may be a view, such as a transposed tensor, and is not modified.
  - No Python loop runs over positions, columns, batch or tokens.

Example

    sinusoidal(4, 4, base=100.0) = tensor([[0.0000,  1.0000, 0.0000, 1.0000],
                                           [0.8415,  0.5403, 0.0998, 0.9950],
                                           [0.9093, -0.4161, 0.1987, 0.9801],
                                           [0.1411, -0.9900, 0.2955, 0.9553]])

The second pair of columns turns ten times more slowly than the first.

    def attend(x):
        return torch.softmax(x @ x.mT, dim=-1) @ x

    x           = tensor([[[1., 0.], [0., 1.], [1., 1.]]])
    permutation = tensor([1, 2, 0])
    encode      = PositionalEncoding(2, 3)

    permutation_gap(attend, x, permutation)                      = 0.0000
    permutation_gap(lambda x: attend(encode(x)), x, permutation) = 0.8821
    permutation_gap(encode, x, permutation)                      = 1.4161

What is new: The order of the tokens, which attention without a mask does
not see.

From: Attention Is All You Need (2017)
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the encoding of the positions 0, 1, ..., (context_length, d_model) in float32."""
    raise NotImplementedError("fill in positional_encoding")


class PositionalEncoding(nn.Module):
    """Adds its sinusoidal encoding to each token."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        raise NotImplementedError("fill in positional_encoding")

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        raise NotImplementedError("fill in positional_encoding")


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    """Return how far a block is from giving permuted tokens its permuted output.

    block        maps (batch, n_tokens, d_model) to the same shape
    x            (batch, n_tokens, d_model)
    permutation  (n_tokens,), which token comes to each place
    returns      the largest absolute difference, a float or a tensor without axes
    """
    raise NotImplementedError("fill in positional_encoding")
