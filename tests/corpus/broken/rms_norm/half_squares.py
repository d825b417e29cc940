# broken: squares a float16 input in half precision, so 300 overflows
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        mean_square = x.pow(2).mean(dim=-1, keepdim=True).to(torch.promote_types(x.dtype, torch.float32))
        h = x.to(mean_square.dtype)
        return (h / torch.sqrt(mean_square + self.eps) * self.gamma.to(h.dtype)).to(x.dtype)
