# exercise: layer_norm
# mistake: divides by the Euclidean length of the centred token (sum of squares, not the mean)
# true: the normalised features are too small by a factor of about root d_model
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.sum(-1, keepdim=True) / x.shape[-1]
        diff = x - mean
        var = diff.square().sum(-1, keepdim=True)
        return torch.addcmul(self.beta, self.gamma.expand_as(x), diff / torch.sqrt(var + self.eps))
