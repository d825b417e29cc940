# mistake: another_default_eps
# the default of eps is 1e-3, as in Keras, and not 1e-5
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-3) -> None:
        super().__init__()
        self.epsilon = eps
        self.gamma = nn.Parameter(torch.empty(d_model))
        self.beta = nn.Parameter(torch.empty(d_model))
        nn.init.ones_(self.gamma)
        nn.init.zeros_(self.beta)

    def forward(self, x: Tensor) -> Tensor:
        var, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        normalised = (x - mean) / torch.sqrt(var + self.epsilon)
        return torch.addcmul(self.beta, self.gamma, normalised)
