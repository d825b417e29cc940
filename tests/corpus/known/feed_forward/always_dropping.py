# mistake: dropout_in_eval
# F.dropout is called without the module's mode, so hidden units are dropped in eval mode as well
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


class FeedForward(nn.Module):
    """FFN(x) = dropout(max(0, x W1 + b1)) W2 + b2"""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.p = dropout
        self.linear1 = nn.Linear(d_model, d_ff, bias=True)
        self.linear2 = nn.Linear(d_ff, d_model, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.linear1(x))
        hidden = F.dropout(hidden, self.p)
        return self.linear2(hidden)
