import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Normalisierung pro Token, Varianz aus den Abweichungen."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((d_model,), 1.0))
        self.beta = nn.Parameter(torch.full((d_model,), 0.0))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        typ = torch.promote_types(x.dtype, torch.float32)
        h = x.to(typ)
        d = h.size(-1)
        abweichung = h - h.sum(-1, keepdim=True) / d
        varianz = torch.einsum("...i,...i->...", abweichung, abweichung).unsqueeze(-1) / d
        dach = abweichung / (varianz + self.eps) ** 0.5
        return torch.addcmul(self.beta.to(typ), self.gamma.to(typ), dach).to(x.dtype)
