# mistake: relu6
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        up = nn.Linear(d_model, d_ff)
        down = nn.Linear(d_ff, d_model)
        self.add_module("linear1", up)
        self.add_module("act", nn.ReLU6())
        self.add_module("drop", nn.Dropout(dropout))
        self.add_module("linear2", down)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for layer in self.children():
            y = layer(y)
        return y
