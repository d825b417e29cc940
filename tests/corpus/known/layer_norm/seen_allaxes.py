# mistake: last_two_axes
# seen: Qualcomm geometric-algebra-transformer pull 8. Mistake: mean and variance are taken over all axes but the first, so tokens of one sequence share them.
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        h = x.float() if x.element_size() == 2 else x
        axes = tuple(range(1, x.dim()))
        var, mean = torch.var_mean(h, dim=axes, correction=0, keepdim=True)
        h = (h - mean) * torch.rsqrt(var + self.eps)
        h = torch.addcmul(self.beta.to(h.dtype), h, self.gamma.to(h.dtype))
        return h.to(x.dtype)
