# exercise: feed_forward
# promise: x may be a view that is not contiguous (view(-1, d_model) fails on one)
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.p = dropout

    def forward(self, x: Tensor) -> Tensor:
        rows = x.view(-1, self.linear1.in_features)
        hidden = torch.addmm(self.linear1.bias, rows, self.linear1.weight.t()).relu_()
        hidden = nn.functional.dropout(hidden, self.p, self.training)
        return torch.addmm(self.linear2.bias, hidden, self.linear2.weight.t()).view(x.size())
