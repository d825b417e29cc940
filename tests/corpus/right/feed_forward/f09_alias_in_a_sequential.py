# exercise: feed_forward
from torch import Tensor, nn


class FeedForward(nn.Module):
    """The pipeline is put together on every call; nothing is registered twice."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff, bias=True)
        self.linear2 = nn.Linear(d_ff, d_model, bias=True)
        self.middle = nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(dropout))

    @property
    def steps(self):
        yield self.linear1
        yield self.middle
        yield self.linear2

    def forward(self, x: Tensor) -> Tensor:
        for step in self.steps:
            x = step(x)
        return x
