# mistake: eps_outside_the_root
# eps is added to the root instead of inside of it.
import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.register_parameter("gamma", nn.Parameter(torch.empty(d_model)))
        self.d_model, self.eps = d_model, eps
        nn.init.ones_(self.gamma)

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=wide)
        root = (length**2 / self.d_model) ** 0.5 + self.eps
        return (self.gamma.to(wide) * (x.to(wide) / root)).to(x.dtype)
