# mistake: another_activation
from torch import Tensor, nn


class ReLU2(nn.Module):
    def forward(self, h):
        return h.clamp(min=0).pow(2)


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.middle = nn.Sequential(ReLU2(), nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.middle(self.linear1(x)))
