# right: everything in float64 with einsum for the mean square, then cast back to the dtype of x.
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.register_parameter("gamma", nn.Parameter(torch.ones(d_model)))
        self.register_parameter("beta", nn.Parameter(torch.zeros(d_model)))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.float64)
        centred = wide - wide.mean(dim=-1, keepdim=True)
        power = torch.einsum("...d,...d->...", centred, centred) / x.shape[-1]
        unit = centred * torch.rsqrt(power + self.eps).unsqueeze(-1)
        return torch.addcmul(self.beta.double(), self.gamma.double(), unit).to(x.dtype)
