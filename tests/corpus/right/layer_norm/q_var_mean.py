import torch
from torch import Tensor, nn


def standardise(t: Tensor, eps: float) -> Tensor:
    var, mean = torch.var_mean(t, dim=-1, correction=0, keepdim=True)
    return torch.div(torch.sub(t, mean), torch.sqrt(torch.add(var, eps)))


class LayerNorm(nn.Module):
    gamma: Tensor
    beta: Tensor

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma, self.beta = (nn.Parameter(fill(d_model)) for fill in (torch.ones, torch.zeros))

    def forward(self, x: Tensor) -> Tensor:
        precise = x if x.dtype == torch.float64 else x.float()
        return torch.addcmul(self.beta, self.gamma, standardise(precise, self.eps)).to(x.dtype)
