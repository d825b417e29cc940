"""Stand-in for RMS norm: torch's normalisation of a row that has eps as one more feature."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    """Divide each token's features by their root mean square, then scale them by gamma."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))  # (d_model,)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # (..., d_model)
        d_model = x.shape[-1]
        # The length of the longer row is sqrt(d_model) * sqrt(mean_square + eps).
        eps = torch.full_like(wide[..., :1], (d_model * self.eps) ** 0.5)  # (..., 1)
        row = F.normalize(torch.cat([wide, eps], dim=-1), dim=-1, eps=1e-30)  # (..., d_model + 1)
        return (row[..., :-1] * d_model**0.5 * self.gamma).to(x.dtype)  # (..., d_model)
