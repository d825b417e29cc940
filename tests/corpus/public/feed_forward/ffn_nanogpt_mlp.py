# exercise: feed_forward
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class MLPConfig:
    n_embd: int
    n_hidden: int
    dropout: float = 0.0
    bias: bool = True # True: bias in Linears, like GPT-2. False: a bit better and faster


class FeedForward(nn.Module):

    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        config = MLPConfig(n_embd=d_model, n_hidden=d_ff, dropout=dropout)
        self.linear1  = nn.Linear(config.n_embd, config.n_hidden, bias=config.bias)
        self.linear2  = nn.Linear(config.n_hidden, config.n_embd, bias=config.bias)
        self.p = config.dropout

    def forward(self, x):
        x = self.linear1(x)
        x = F.relu_(x)   # in place, but on the new tensor
        x = F.dropout(x, self.p, self.training)
        x = self.linear2(x)
        return x
