r"""# Feed-forward network

Attention moves information between positions. What is done with it at each
position is the work of a small network of two layers: the first widens the
token to d_ff hidden units, a ReLU cuts off the negative ones, the second
brings it back to d_model.

    hidden = max(0, x W1^T + b1)
    FFN(x) = dropout(hidden) W2^T + b2

The same weights serve every position, and no position sees another.

Write

    FeedForward(d_model, d_ff, dropout=0.0)      an nn.Module

    linear1   nn.Linear   d_model -> d_ff, with bias
    linear2   nn.Linear   d_ff -> d_model, with bias

    forward(x)
    x        (..., d_model)      one or more axes in front, mostly
                                 (batch, n_tokens, d_model)
    returns  (..., d_model)      dtype of x

linear1 is created first, then linear2, both as nn.Linear initialises them:
after the same torch.manual_seed everyone has the same weights. There are
2 * d_model * d_ff + d_ff + d_model numbers to learn, and no other parameters.

At the edges
  - Dropout works on the hidden units, after the ReLU: in training each is 0
    with probability `dropout` and divided by 1 - dropout otherwise; at rate 1
    all are 0. In eval mode nothing is dropped.
  - There is no activation behind linear2, and no residual: x is not added.
  - The layers follow .to(dtype), bfloat16 included.
  - x may be a view that is not contiguous. It is left as it was.
  - No Python loop over batch or tokens.
  - nn.TransformerEncoderLayer, which has this network inside, is not allowed;
    nn.Linear, relu and dropout are.

Example

    net = FeedForward(2, 3)
    linear1.weight = [[1., 0.], [0., 1.], [1., 1.]]
    linear1.bias   = [0., 1., -5.]
    linear2.weight = [[1., 1., 1.], [0., -2., 1.]]
    linear2.bias   = [0.5, 1.]

    x      = tensor([[2., 1.]])
    before = tensor([[2., 2., -2.]])     linear1(x)
    hidden = tensor([[2., 2., 0.]])
    net(x) = tensor([[4.5, -3.0]])

Write it by hand. Of torch, these are not accepted here: Transformer,
transformer_encoder_layer, MLP.
"""

import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Two linear layers with ReLU and dropout between them, on each position alone."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        raise NotImplementedError("fill in feed_forward")

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        raise NotImplementedError("fill in feed_forward")
