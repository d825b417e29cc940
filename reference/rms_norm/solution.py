"""Reference solution: RMS norm in float32, cast once at the end."""

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Divide each token's features by their root mean square, then scale them by gamma."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        # --- solution
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))  # (d_model,)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        # --- solution
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # (..., d_model)
        mean_square = wide.square().mean(dim=-1, keepdim=True)  # (..., 1)
        normed = wide / torch.sqrt(mean_square + self.eps)  # (..., d_model)
        output = self.gamma * normed  # (..., d_model)
        return output.to(x.dtype)  # (..., d_model)
        # --- end
