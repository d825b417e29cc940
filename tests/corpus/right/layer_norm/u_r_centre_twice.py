# right: the rest of the mean is subtracted a second time, and the variance is the squared vector norm over d_model.
import torch
from torch import Tensor, nn


def _centre(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model, self.eps = d_model, float(eps)
        self.gamma = nn.Parameter(torch.full((d_model,), 1.0))
        self.beta = nn.Parameter(torch.full((d_model,), 0.0))

    def forward(self, x: Tensor) -> Tensor:
        work = torch.promote_types(x.dtype, torch.float32)
        c = _centre(_centre(x.to(work)))
        var = (c * c).sum(-1, keepdim=True) / self.d_model
        out = self.gamma.to(work) * c / (var + self.eps) ** 0.5 + self.beta.to(work)
        return out.to(x.dtype)
