# right: the twin of one with a mistake, epsoutside
# seen: codertimo/BERT-pytorch issue 30. Mistake: eps is added to the standard deviation, outside of the square root. (Fixed in this twin.)
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Features of each token to mean 0 and variance 1, then gamma and beta."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        dtype = x.dtype
        work = torch.promote_types(dtype, torch.float32)
        centred = x.to(work) - x.to(work).mean(dim=-1, keepdim=True)
        variance = centred.pow(2).mean(dim=-1, keepdim=True)
        std = (variance + self.eps).sqrt()
        return (centred / std * self.gamma.to(work) + self.beta.to(work)).to(dtype)
