import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Everything is measured from the token's first feature, so large offsets cancel exactly."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        u = x.to(wide)
        u = u - u[..., :1]
        d = u.shape[-1]
        c = u - torch.einsum("...i->...", u).unsqueeze(-1) / d
        var = torch.einsum("...i,...i->...", c, c).unsqueeze(-1) / d
        return (c * torch.rsqrt(var + self.eps) * self.gamma + self.beta).to(x.dtype)
