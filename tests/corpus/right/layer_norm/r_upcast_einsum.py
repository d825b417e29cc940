# 先转成 float32 计算均值和方差,最后再转回原来的类型
import torch
from torch import Tensor, nn
from torch.nn import Parameter


def _standardise(x: Tensor, eps: float) -> Tensor:
    d = x.size(-1)
    centred = x - (x.sum(-1) / d).unsqueeze(-1)
    # a second centring removes what rounding left in the first mean
    centred = centred - centred.mean(-1, keepdim=True)
    power = torch.einsum("...i,...i->...", centred, centred) / d
    return centred / power.add(eps).sqrt().unsqueeze(-1)


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = Parameter(torch.ones(d_model))
        self.beta = Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        x_hat = _standardise(x.to(wide), self.eps)
        out = self.gamma.to(wide) * x_hat + self.beta.to(wide)
        return out.to(x.dtype)
