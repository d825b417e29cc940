# exercise: feed_forward
# mistake: writes the ReLU as h + |h| and forgets to halve it
# true: every hidden unit is twice the expected one (the output too, apart from the bias of linear2)
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    @staticmethod
    def relu(h: Tensor) -> Tensor:
        return h + h.abs()

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear1(x)
        h = self.drop(self.relu(h))
        y = self.linear2(h)
        return y
