# note: a subclass of nn.Sequential with named steps in an OrderedDict, no forward of its own
from collections import OrderedDict

from torch import nn


class FeedForward(nn.Sequential):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__(
            OrderedDict(
                linear1=nn.Linear(d_model, d_ff),
                rectify=nn.ReLU(inplace=True),
                thin=nn.Dropout(dropout),
                linear2=nn.Linear(d_ff, d_model),
            )
        )
