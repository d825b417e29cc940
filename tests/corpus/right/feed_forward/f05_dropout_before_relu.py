# exercise: feed_forward
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Dropping a unit and cutting it at 0 commute, so the order does not show."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def hidden(self, x: Tensor) -> Tensor:
        return self.dropout(self.linear1(x)).relu()

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.hidden(x))
