# mistake: buffers_for_parameters
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        for name, start in {"gamma": 1.0, "beta": 0.0}.items():
            self.register_buffer(name, torch.full((d_model,), start))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, correction=0)
        return self.gamma * ((x - mean) / torch.sqrt(var + self.eps)) + self.beta
