# mistake: buffers_for_parameters
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.register_buffer("beta", torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2).double()
        rows = rows - torch.mm(rows, rows.new_full((rows.size(1), 1), 1 / rows.size(1)))
        spread = torch.einsum("nd,nd->n", rows, rows) / rows.size(1)
        rows = rows / (spread + self.eps).sqrt().unsqueeze(1)
        return (rows * self.gamma + self.beta).to(x.dtype).view(x.shape)
