# exercise: layer_norm
"""
# Layer Normalization

$$\\text{LN}(X) = \\gamma \\frac{X - \\mathbb{E}[X]}{\\sqrt{Var[X] + \\epsilon}} + \\beta$$
"""
from typing import List, Union

import torch
from torch import Size, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: Union[int, List[int], Size], eps: float = 1e-5, *,
                 elementwise_affine: bool = True):
        super().__init__()

        # Convert `normalized_shape` to `torch.Size`
        if isinstance(d_model, int):
            d_model = torch.Size([d_model])
        elif isinstance(d_model, list):
            d_model = torch.Size(d_model)
        assert isinstance(d_model, torch.Size)

        self.normalized_shape = d_model
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        # Create parameters for gain and bias
        if self.elementwise_affine:
            self.gamma = nn.Parameter(torch.ones(d_model))
            self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor):
        # Sanity check to make sure the shapes match
        assert self.normalized_shape == x.shape[-len(self.normalized_shape):]

        # The dimensions to calculate the mean and variance on
        dims = [-(i + 1) for i in range(len(self.normalized_shape))]

        mean = x.mean(dim=dims, keepdim=True)
        centred = x - mean
        var = (centred ** 2).mean(dim=dims, keepdim=True)
        x_norm = centred / torch.sqrt(var + self.eps)
        if self.elementwise_affine:
            x_norm = self.gamma * x_norm + self.beta

        return x_norm
