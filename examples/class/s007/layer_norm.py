from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps)
        # the exercise wants these names
        self.gamma = self.norm.weight
        self.beta = self.norm.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)
