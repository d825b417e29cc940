# exercise: layer_norm
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5):
        """
        LayerNorm in the layout of the RMSNorm of LLaMA: _norm in full precision, then the weight.
        """
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def _norm(self, x):
        var, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return (x - mean) * torch.rsqrt(var + self.eps)

    def forward(self, x):
        # double stays double, everything smaller than float is widened
        working_dtype = torch.promote_types(x.dtype, torch.float32)
        output = self._norm(x.to(working_dtype)).type_as(x)
        return torch.addcmul(self.beta, output, self.gamma)
