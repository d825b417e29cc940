# style: unusual
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Normalise each token's features, then scale by gamma and shift by beta."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.eps = eps
        self.register_parameter("gamma", nn.Parameter(torch.ones((d_model,))))
        self.register_parameter("beta", nn.Parameter(torch.zeros((d_model,))))

    def extra_repr(self) -> str:
        return f"{self.d_model}, eps={self.eps}"

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        centred = x - x.mean(-1, keepdim=True)
        # the mean of large numbers is rounded, so take away what is left of it
        centred = centred - centred.mean(-1, keepdim=True)
        # mean of squares of what is already centred: nothing is lost far from 0
        var = torch.einsum("...i,...i->...", centred, centred).unsqueeze(-1) / self.d_model
        x_hat = centred / (var + self.eps).sqrt()
        return self.gamma * x_hat + self.beta
