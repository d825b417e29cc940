# right: the class is an nn.Sequential whose layers are named by an OrderedDict.
from collections import OrderedDict

import torch
from torch import Tensor, nn


class FeedForward(nn.Sequential):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__(
            OrderedDict(
                linear1=nn.Linear(d_model, d_ff),
                relu=nn.ReLU(),
                dropout=nn.Dropout(dropout),
                linear2=nn.Linear(d_ff, d_model),
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)
