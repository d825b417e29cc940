r"""# Layer norm

Deep networks train better when every layer gets inputs of the same scale.
Layer norm works on one token at a time: it normalises the token's features to
mean 0 and variance 1, and then lets the network learn a new scale and offset
for each feature.

    mean  = sum over i of x[i] / d_model
    var   = sum over i of (x[i] - mean)^2 / d_model
    x_hat = (x - mean) / sqrt(var + eps)
    LN(x) = gamma * x_hat + beta

The sums run over the last axis only. The variance divides by d_model, not by
d_model - 1, and eps is added inside the square root.

Write

    LayerNorm(d_model, eps=1e-5)      an nn.Module

    gamma    (d_model,)               parameter, initially ones
    beta     (d_model,)               parameter, initially zeros

    forward(x)
    x        (..., d_model)           one or more leading axes, usually
                                      (batch, n_tokens, d_model); the dtype is
                                      that of the layer
    returns  (..., d_model)           the same dtype

The layer has no other parameters, and its state_dict holds these two.

Requirements
  - A token whose features are all equal has variance 0. Its output is beta
    (not nan), and gradients stay finite.
  - Features far from 0, such as those around a million, lose no more digits
    than their mean does. Mathematically, the variance equals mean(x^2) -
    mean^2, but in floating point this formula loses all of them.
  - The layer supports .to(dtype), including bfloat16.
  - x may be a view that is not contiguous. It is not modified.
  - No Python loop runs over batch, tokens or features.
  - torch's own norms (layer, group, batch, instance, RMS) are not allowed;
    mean, var and sqrt are.

Example

    layer = LayerNorm(4, eps=0.5)
    x     = tensor([[1., 2., 3., 6.]])           mean 3, var 3.5
    x_hat = tensor([[-1.0, -0.5, 0.0, 1.5]])     sqrt(3.5 + 0.5) is 2

    with gamma = [1., 2., 3., 4.] and beta = [10., 20., 30., 40.]
    layer(x) = tensor([[9., 19., 30., 46.]])

Write it by hand. These names of torch are not accepted here: layer_norm,
LayerNorm, group_norm, GroupNorm, batch_norm, BatchNorm, instance_norm,
InstanceNorm, rms_norm, RMSNorm.

What is new: The features of each token stay in one range, however many
layers there are.

From: Layer Normalization (2016)
"""

import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Normalise each token's features, then scale by gamma and shift by beta."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        raise NotImplementedError("fill in layer_norm")

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        raise NotImplementedError("fill in layer_norm")
