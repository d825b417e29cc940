# right
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super(RMSNorm, self).__init__()
        self.d_model = d_model
        self.register_buffer("eps", torch.tensor(float(eps), dtype=torch.float64), persistent=False)
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        rows = x.reshape(-1, self.d_model)
        work = rows.to(torch.float64) if rows.dtype == torch.float64 else rows.to(torch.float32)
        average = torch.full((self.d_model, 1), 1 / self.d_model, dtype=work.dtype, device=x.device)
        mean_square = (work * work) @ average
        root = torch.sqrt(mean_square + self.eps.to(work.dtype))
        normed = work / root
        out = normed * self.gamma.to(work.dtype)
        return out.reshape(x.shape).to(x.dtype)
