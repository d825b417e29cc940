import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x, old, new):
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


class _N:
    """A tensor whose axes are reached by name only."""

    def __init__(self, tensor, names):
        names = list(names)
        for name in names:
            if names.count(name) > 1:
                raise ValueError("doubled axis: " + name)
        self.tensor, self.names = tensor, names

    def size(self, name):
        return self.tensor.size(self.names.index(name))

    def sizes(self, names):
        return [self.size(name) for name in names]

    def matrix(self, *groups):
        """The tensor with one axis for each group of names."""
        order = [self.names.index(name) for group in groups for name in group]
        shape = [math.prod(self.sizes(group)) for group in groups]
        return self.tensor.permute(order).reshape(shape)

    def softmax(self, name):
        return _N(torch.softmax(self.tensor, self.names.index(name)), self.names)

    def dot(self, other, over):
        for x in (self, other):
            for name in over:
                if name not in x.names:
                    raise ValueError("missing axis: " + name)
        common = [n for n in self.names if n in other.names]
        for name in common:
            if self.size(name) != other.size(name):
                raise ValueError("unequal axis: " + name)
        batch = [n for n in common if n not in over]
        rows = [n for n in self.names if n not in common]
        columns = [n for n in other.names if n not in common]
        product = torch.bmm(
            self.matrix(batch, rows, over), other.matrix(batch, over, columns)
        )
        shape = self.sizes(batch) + self.sizes(rows) + other.sizes(columns)
        return _N(product.reshape(shape), batch + rows + columns)

    def pair(self):
        return self.tensor, tuple(self.names)


def contract(left: Named, right: Named, *over: str) -> Named:
    return _N(*left).dot(_N(*right), list(over)).pair()


def attend(query: Named, key: Named, value: Named) -> Named:
    q, k, v = _N(*query), _N(*key), _N(*value)
    if "seq" in q.names:
        raise ValueError("no axis seq is allowed in the query")
    if "seq" not in k.names:
        raise ValueError("missing axis: seq")
    scores = q.dot(k, ["key"])
    scores.tensor = scores.tensor / math.sqrt(k.size("key"))
    return scores.softmax("seq").dot(v, ["seq"]).pair()


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    queries, keys, values = (contract(x, W, "chans") for W in (W_q, W_k, W_v))
    context = attend(rename(queries, "seq", "query"), keys, values)
    return rename(contract(context, W_o, "val", "head"), "query", "seq")
