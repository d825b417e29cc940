# mistake: not in the catalogue: weights of at most a hundredth are set to 0
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _named_size(x: Named, name: str) -> int:
    tensor, names = x
    places = [i for i, other in enumerate(names) if other == name]
    if not places:
        raise ValueError(f"the axis {name} is missing")
    if len(places) > 1:
        raise ValueError(f"the axis {name} is doubled")
    return tensor.shape[places[0]]


def _spread(x: Named, order: list[str]) -> Tensor:
    tensor, names = x
    tensor = tensor.permute([names.index(name) for name in order if name in names])
    index = tuple(slice(None) if name in names else None for name in order)
    return tensor[index]


def contract(left: Named, right: Named, *over: str) -> Named:
    for name in over:
        _named_size(left, name)
        _named_size(right, name)
    for name in left[1]:
        size = _named_size(left, name)
        if name in right[1] and _named_size(right, name) != size:
            raise ValueError(f"the axis {name} has unequal sizes")
    for name in right[1]:
        _named_size(right, name)
    order = list(dict.fromkeys(left[1] + right[1]))
    product = torch.mul(_spread(left, order), _spread(right, order))
    places = [order.index(name) for name in dict.fromkeys(over)]
    return product.sum(places) if over else product, tuple(name for name in order if name not in over)


def _to_order(x: Named, order: tuple[str, ...]) -> Named:
    return x[0].permute([x[1].index(name) for name in order]), order


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("the query may not have the axis seq")
    _named_size(key, "seq"), _named_size(value, "seq"), _named_size(key, "key")
    d_key = _named_size(query, "key")
    scores, names = contract((query[0] / math.sqrt(d_key), query[1]), key, "key")
    place = names.index("seq")
    weights = scores.movedim(place, -1).softmax(-1).movedim(-1, place)
    weights = weights * (weights > 0.01)
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    _named_size(x, "seq")
    _named_size(x, "chans")
    for w, names in (
        (W_q, ("head", "chans", "key")),
        (W_k, ("head", "chans", "key")),
        (W_v, ("head", "chans", "val")),
        (W_o, ("head", "chans", "val")),
    ):
        for name in names:
            _named_size(w, name)
    q = contract(W_q, rename(x, "seq", "query"), "chans")
    k = contract(W_k, x, "chans")
    v = contract(W_v, x, "chans")
    out = rename(contract(W_o, attend(q, k, v), "val", "head"), "query", "seq")
    return _to_order(out, tuple(x[1]))
