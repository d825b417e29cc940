# right
import math
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.eps = eps
        weight = torch.empty(d_model)
        nn.init.ones_(weight)
        self.gamma = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        input_dtype = x.dtype
        if input_dtype in (torch.float16, torch.bfloat16):
            x = x.float()
        # One more feature of value sqrt(eps * d) makes the eps part of the norm.
        extra = x.new_full((*x.shape[:-1], 1), math.sqrt(self.eps * self.d_model))
        length = torch.linalg.vector_norm(torch.cat([x, extra], dim=-1), dim=-1, keepdim=True)
        out = x / length * math.sqrt(self.d_model) * self.gamma
        return out.to(input_dtype)
