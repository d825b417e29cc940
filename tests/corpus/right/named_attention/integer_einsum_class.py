# right: a class that carries the names, einsum with lists of numbers, refusals in its constructor
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


class Axes:
    """A tensor with its names, checked once."""

    def __init__(self, pair: Named, *required: str) -> None:
        self.tensor, self.names = pair
        self.size = {}
        for name, size in zip(self.names, self.tensor.shape):
            if name in self.size:
                raise ValueError(f"doubled axis '{name}' in {self.names}")
            self.size[name] = size
        for name in required:
            if name not in self.size:
                raise ValueError(f"missing axis '{name}' in {self.names}")

    def times(self, other: "Axes", over: tuple[str, ...]) -> Named:
        for name in self.size.keys() & other.size.keys():
            if self.size[name] != other.size[name]:
                raise ValueError(
                    f"unequal axis '{name}': {self.size[name]} and {other.size[name]}"
                )
        everything = sorted(self.size.keys() | other.size.keys())
        kept = [name for name in everything if name not in over]
        place = everything.index
        tensor = torch.einsum(
            self.tensor,
            list(map(place, self.names)),
            other.tensor,
            list(map(place, other.names)),
            list(map(place, kept)),
        )
        return tensor, tuple(kept)


def contract(left: Named, right: Named, *over: str) -> Named:
    return Axes(left, *over).times(Axes(right, *over), over)


def attend(query: Named, key: Named, value: Named) -> Named:
    q, k, v = Axes(query, "key"), Axes(key, "key", "seq"), Axes(value, "seq")
    if "seq" in q.size:
        raise ValueError("the axis 'seq' is not for queries")
    q.tensor = q.tensor * (1 / math.sqrt(q.size["key"]))
    scores, names = q.times(k, ("key",))
    weights = torch.softmax(scores, dim=names.index("seq"))
    return Axes((weights, names)).times(v, ("seq",))


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    Axes(x, "seq", "chans")
    Axes(W_q, "head", "chans", "key")
    Axes(W_k, "head", "chans", "key")
    Axes(W_v, "head", "chans", "val")
    Axes(W_o, "head", "val", "chans")
    query = contract(rename(x, "seq", "query"), W_q, "chans")
    context = attend(query, contract(x, W_k, "chans"), contract(x, W_v, "chans"))
    return rename(contract(context, W_o, "head", "val"), "query", "seq")
