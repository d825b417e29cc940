# mistake: unbiased_variance
# seen: harvardnlp/annotated-transformer pull 119. Mistake: the variance is torch's default, which divides by d_model - 1.
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
        mean = wide.mean(-1, keepdim=True)
        var = wide.var(-1, keepdim=True)
        x_hat = (wide - mean) / torch.sqrt(var + self.eps)
        return self.gamma * x_hat.to(x.dtype) + self.beta
