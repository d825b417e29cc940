r"""# SwiGLU

The feed-forward network of a Transformer widens each token, applies an
activation and maps it back. A gated network widens the token twice: one layer
proposes numbers, the other decides how much of each passes. With silu as the
activation of the gate, that is SwiGLU, the feed-forward part of LLaMA.

    silu(z)   = z * sigmoid(z)
    gate      = silu(W_gate x)
    hidden    = gate * W_up x                      elementwise
    SwiGLU(x) = W_down dropout(hidden)

Three matrices have the parameters of the usual two, of width 4 * d_model, if
the width is 8/3 * d_model. Hardware likes round numbers, so that is rounded up
to a multiple of one.

Write

    SwiGLU(d_model, d_ff, dropout=0.0)      an nn.Module

    W_gate   nn.Linear   d_model -> d_ff, no bias
    W_up     nn.Linear   d_model -> d_ff, no bias
    W_down   nn.Linear   d_ff -> d_model, no bias

    forward(x)
    x        (..., d_model)      one or more leading axes, usually
                                 (batch, n_tokens, d_model)
    returns  (..., d_model)      dtype of x

    hidden_size(d_model, multiple=256)

    returns  an int: 8 * d_model // 3, rounded up to a multiple of `multiple`

The module has 3 * d_model * d_ff numbers to learn: no others, in particular no
factor inside of silu.

Requirements
  - Dropout is applied to hidden, the product. In training, each unit is set to
    0 with probability `dropout` and divided by 1 - dropout otherwise. In eval
    mode nothing is dropped.
  - There is no residual: x is not added.
  - Numbers of 10000 and -10000 in front of silu give finite outputs and
    gradients.
  - hidden_size refuses a multiple below 1: ValueError. A size that is a
    multiple already stays.
  - The layers support .to(dtype), including bfloat16.
  - x may be a view that is not contiguous. It is not modified.
  - No Python loop runs over batch, tokens or features.
  - F.glu, nn.GLU and parts of torch's Transformer are not allowed; nn.Linear,
    F.silu and nn.Dropout are.

Example

    net = SwiGLU(2, 3)
    W_gate.weight = [[1., 0.], [0., 1.], [1., 1.]]
    W_up.weight   = [[0., 1.], [1., 0.], [1., -1.]]
    W_down.weight = [[1., 1., 1.], [0., -2., 1.]]

    x      = tensor([[2., 1.]])
    gate   = tensor([[1.7616, 0.7311, 2.8577]])      silu of 2, 1, 3
    hidden = tensor([[1.7616, 1.4621, 2.8577]])      times 1, 2, 1
    net(x) = tensor([[6.0814, -0.0665]])

    hidden_size(4096) = 11008     hidden_size(64, 8)   = 176
    hidden_size(96, 8) = 256      hidden_size(100, 32) = 288

Write it by hand. These names of torch are not accepted here: glu, GLU,
Transformer, transformer_encoder_layer.

What is new: Hidden units that are products: one layer decides how much of
another passes.

From: GLU Variants Improve Transformer (2020)
"""

import torch.nn.functional as F
from torch import Tensor, nn


class SwiGLU(nn.Module):
    """Two layers side by side, of which one gates the other, and one that leads back."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        raise NotImplementedError("fill in swiglu")

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        raise NotImplementedError("fill in swiglu")


def hidden_size(d_model: int, multiple: int = 256) -> int:
    """Return 8 * d_model // 3, rounded up to a multiple; raises ValueError for one below 1."""
    raise NotImplementedError("fill in swiglu")
