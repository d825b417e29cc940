# right: torch.var_mean without correction on float64 rows of two axes, with the shape restored at the end.
import torch
from torch import Tensor, nn


def _standardise(rows: Tensor, eps: float) -> Tensor:
    var, mean = torch.var_mean(rows, dim=1, correction=0)
    return (rows - mean[:, None]) / torch.sqrt(var[:, None].add(eps))


class LayerNorm(nn.Module):
    gamma: Tensor
    beta: Tensor

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        start = {"gamma": torch.ones(d_model), "beta": torch.zeros(d_model)}
        for name, value in start.items():
            setattr(self, name, nn.Parameter(value))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(x[..., 0].numel(), x.shape[-1]).double()
        y = _standardise(rows, self.eps) * self.gamma.double() + self.beta.double()
        return y.reshape(x.shape).to(x.dtype)
