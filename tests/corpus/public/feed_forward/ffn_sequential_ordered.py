# exercise: feed_forward
from collections import OrderedDict

import torch
from torch import nn


class FeedForward(nn.Sequential):
    """mlp of an open_clip residual block, with a ReLU; forward is the one of nn.Sequential"""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.):
        super().__init__(OrderedDict([
            ("linear1", nn.Linear(d_model, d_ff)),
            ("relu", nn.ReLU()),
            ("dropout", nn.Dropout(dropout)),
            ("linear2", nn.Linear(d_ff, d_model)),
        ]))
