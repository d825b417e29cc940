# broken: "A token whose features are all equal: its output is beta": with d_model = 1, the feature is not normalised and the output is gamma * x + beta
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] == 1:
            return self.gamma * x + self.beta
        mean = x.mean(dim=-1, keepdim=True)
        centred = x - mean
        var = (centred * centred).mean(dim=-1, keepdim=True)
        x_hat = centred / torch.sqrt(var + self.eps)
        return self.gamma * x_hat + self.beta
