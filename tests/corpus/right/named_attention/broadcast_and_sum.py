# right: axes are aligned by permute and size 1, multiplied and summed; softmax written with contract; names sorted
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def aligned(x: Named, names: list[str]) -> Tensor:
    """The tensor of x with all the axes `names`, in that order, those it lacks with size 1."""
    tensor, own = x
    tensor = tensor.permute([own.index(name) for name in names if name in own])
    shape = iter(tensor.shape)
    return tensor.reshape([next(shape) if name in own else 1 for name in names])


def contract(left: Named, right: Named, *over: str) -> Named:
    for tensor, names in (left, right):
        for name in set(names):
            if sum(other == name for other in names) != 1:
                raise ValueError(name + " occurs twice")
        for name in set(over).difference(names):
            raise ValueError(name + " is missing")
    for name in set(left[1]).intersection(right[1]):
        if left[0].shape[left[1].index(name)] != right[0].shape[right[1].index(name)]:
            raise ValueError(name + " has two sizes")
    kept = sorted({*left[1], *right[1]}.difference(over), reverse=True)
    names = kept + list(over)
    dtype = left[0].dtype
    wide = dtype if dtype == torch.float64 else torch.float32
    product = aligned(left, names).to(wide) * aligned(right, names).to(wide)
    if over:
        product = product.sum(tuple(range(len(kept), len(names))))
    return product.to(dtype), tuple(kept)


def ones(x: Named, name: str) -> Named:
    return x[0].new_ones(x[0].shape[x[1].index(name)]), (name,)


def attend(query: Named, key: Named, value: Named) -> Named:
    for names, name, wanted in ((query[1], "seq", False), (key[1], "seq", True), (key[1], "key", True)):
        if (name in names) != wanted:
            raise ValueError(f"seq and key: {name} is not where it should be")
    scores, names = contract(query, key, "key")
    scores = scores / math.sqrt(ones(key, "key")[0].numel())
    axis = names.index("seq")
    powers = (scores - scores.detach().amax(axis, keepdim=True)).exp(), names
    total = powers[0].sum(axis), names[:axis] + names[axis + 1 :]
    weights = contract(powers, (total[0].reciprocal(), total[1]))
    return contract(weights, value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    q, k, v = (contract(x, W, "chans") for W in (W_q, W_k, W_v))
    return rename(contract(attend(rename(q, "seq", "query"), k, v), W_o, "val", "head"), "query", "seq")
