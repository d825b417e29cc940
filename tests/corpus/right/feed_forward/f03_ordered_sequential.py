# exercise: feed_forward
from collections import OrderedDict

from torch import Tensor, nn


class FeedForward(nn.Sequential):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        layers = OrderedDict(
            linear1=nn.Linear(d_model, d_ff),
            relu=nn.ReLU(),
            dropout=nn.Dropout(p=dropout),
            linear2=nn.Linear(d_ff, d_model),
        )
        super().__init__(layers)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)
