# right: the twin of one with a mistake, alwaysdrops
# seen: rixwew/pytorch-fm issue 21 and pytorch/vision issue 7103: the functional dropout is called without training=self.training, so it also drops in eval mode.
from torch import Tensor, nn
from torch.nn import functional as F


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.rate = dropout
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(F.dropout(F.relu(self.linear1(x)), p=self.rate, training=self.training))
