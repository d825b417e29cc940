# exercise: layer_norm
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def one_token(self, token: Tensor) -> Tensor:
        centred = token - token.mean()
        return centred / torch.sqrt((centred * centred).mean() + self.eps)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        x_hat = torch.vmap(self.one_token)(tokens).reshape(x.shape)
        return self.gamma * x_hat + self.beta
