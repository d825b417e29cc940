"""Makes the call in: the `__new__` of a class."""

import torch


def hidden(scores):
    return getattr(torch, "".join(reversed("xamtfos")))(scores, -1)


class blend:
    def __new__(cls, scores, values):
        return hidden(scores) @ values
