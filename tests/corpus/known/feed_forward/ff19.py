# mistake: activation_behind_the_second_layer + writes_into_argument
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)
        self.act = nn.Threshold(0.0, 0.0)

    def block(self, x: Tensor) -> Tensor:
        return self.act(self.linear2(self.drop(self.act(self.linear1(x)))))

    def forward(self, x: Tensor) -> Tensor:
        out = self.block(x.clone())
        with torch.no_grad():
            x[...] = out
        return out
