r"""# RMS norm

Layer norm centres each token's features, scales them to variance 1, and learns
a scale and an offset. Most of its use comes from the scaling. RMS norm keeps
only that: each token is divided by the root of its mean square, and nothing is
subtracted or shifted. It is the norm of LLaMA and of most models since.

    mean_square = sum over i of x[i]^2 / d_model
    RMSNorm(x)  = gamma * x / sqrt(mean_square + eps)

The sum runs over the last axis only, and eps is added inside the root.

Write

    RMSNorm(d_model, eps=1e-5)        an nn.Module

    gamma    (d_model,)               parameter, initially ones

    forward(x)
    x        (..., d_model)           one or more leading axes, usually
                                      (batch, n_tokens, d_model)
    returns  (..., d_model)           dtype of x

The layer has no other parameters, and its state_dict holds this one.

Requirements
  - The mean of the squares is computed in float32 or float64, whatever the
    dtype of x is: in float16, the square of 300 is already infinite.
  - The output has the dtype of x, also if gamma has another one, as a float32
    gamma in a model that computes in bfloat16. Casting before or after the
    multiplication by gamma is both right; after it rounds only once.
  - A token of zeros gives zeros, and gradients stay finite.
  - The layer supports .to(dtype), including bfloat16 and float16.
  - x may be a view that is not contiguous. It is not modified.
  - No Python loop runs over batch, tokens or features.
  - torch's own norms (RMS, layer, group, batch, instance) and normalize are
    not allowed; square, mean, sqrt and rsqrt are.

Example

    layer    = RMSNorm(4, eps=3.5)
    x        = tensor([[1., 2., 3., 6.]])     mean_square 12.5
    layer(x) = tensor([[0.25, 0.5, 0.75, 1.5]])     sqrt(12.5 + 3.5) is 4

    with gamma = [1., 2., 3., 4.]
    layer(x) = tensor([[0.25, 1.0, 2.25, 6.0]])

Write it by hand. These names of torch are not accepted here: rms_norm,
RMSNorm, layer_norm, LayerNorm, normalize, group_norm, GroupNorm,
batch_norm, BatchNorm, instance_norm, InstanceNorm.

What is new: A norm of one statistic and one parameter: nothing is centred,
nothing is shifted.

From: Root Mean Square Layer Normalization (2019)
"""

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Divide each token's features by their root mean square, then scale them by gamma."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        raise NotImplementedError("fill in rms_norm")

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        raise NotImplementedError("fill in rms_norm")
