# exercise: layer_norm
# promise: the layer supports .to(dtype), including bfloat16 (a plain float32 tensor of averages does not move)
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps
        self.size = torch.full((1,), float(d_model))

    def forward(self, x: Tensor) -> Tensor:
        c = x - x.sum(-1, keepdim=True) / self.size
        var = (c * c).sum(-1, keepdim=True) / self.size
        return self.gamma * c / torch.sqrt(var + self.eps) + self.beta
