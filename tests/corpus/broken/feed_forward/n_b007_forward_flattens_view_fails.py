# promise: forward flattens x with view, which fails for an x that is not contiguous.
r"""# Feed-forward network

Attention moves information between positions. A small network of two layers
then processes it at each position: the first layer widens the token to d_ff
hidden units, a ReLU sets the negative ones to 0, and the second layer maps
them back to d_model features.

    hidden = max(0, x W1^T + b1)
    FFN(x) = dropout(hidden) W2^T + b2

Every position uses the same weights, and no position affects another.

Write

    FeedForward(d_model, d_ff, dropout=0.0)      an nn.Module

    linear1   nn.Linear   d_model -> d_ff, with bias
    linear2   nn.Linear   d_ff -> d_model, with bias

    forward(x)
    x        (..., d_model)      one or more leading axes, usually
                                 (batch, n_tokens, d_model)
    returns  (..., d_model)      dtype of x

The order in which the layers are created and their first weights are not
graded. The module has 2 * d_model * d_ff + d_ff + d_model numbers to learn,
and no other parameters.

Requirements
  - Dropout is applied to the hidden units, after the ReLU. In training, each
    unit is set to 0 with probability `dropout` and divided by 1 - dropout
    otherwise; at rate 1, all are 0. In eval mode nothing is dropped.
  - There is no activation after linear2 and no residual: x is not added.
  - The layers support .to(dtype), including bfloat16.
  - x may be a view that is not contiguous. It is not modified.
  - No Python loop runs over batch or tokens.
  - nn.TransformerEncoderLayer, which contains this network, is not allowed;
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

Write it by hand. These names of torch are not accepted here: Transformer,
transformer_encoder_layer, MLP.

What is new: What is done with a token once attention has gathered what
concerns it.

From: Attention Is All You Need (2017)
"""

import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Two linear layers with ReLU and dropout between them, applied to each position separately."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model = d_model
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        shape = x.shape
        flat = x.view(-1, self.d_model)  # all positions of all sentences
        hidden = torch.relu(self.linear1(flat))
        out = self.linear2(self.dropout(hidden))
        return out.view(shape)
