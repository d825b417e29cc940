# right: no einsum: both tensors are permuted to one order of names with axes of size 1, multiplied and summed
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _aligned(x: Named, order: list[str]) -> Tensor:
    tensor, names = x
    present = [n for n in order if n in names]
    tensor = tensor.permute([names.index(n) for n in present])
    for place, n in enumerate(order):
        if n not in names:
            tensor = tensor.unsqueeze(place)
    return tensor


def contract(left: Named, right: Named, *over: str) -> Named:
    sizes: list[dict[str, int]] = []
    for tensor, names in (left, right):
        mine: dict[str, int] = {}
        for n, size in zip(names, tensor.shape):
            if n in mine:
                raise ValueError(f"{n}: twice in one tensor")
            mine[n] = size
        sizes.append(mine)
    for n in over:
        if any(n not in mine for mine in sizes):
            raise ValueError(f"{n}: not in both tensors")
    for n, size in sizes[0].items():
        if sizes[1].get(n, size) != size:
            raise ValueError(f"{n}: {size} and {sizes[1][n]}")
    order = sorted({**sizes[0], **sizes[1]})
    dtype = left[0].dtype
    up = torch.promote_types(dtype, torch.float32)
    product = _aligned(left, order).to(up) * _aligned(right, order).to(up)
    if over:
        product = product.sum(dim=[order.index(n) for n in over])
    return product.to(dtype), tuple(n for n in order if n not in over)


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("seq: not an axis of queries")
    if "seq" not in key[1]:
        raise ValueError("seq: missing in the key")
    s, names = contract(query, key, "key")
    d = dict(zip(key[1], key[0].shape))["key"]
    return contract(((s / math.sqrt(d)).softmax(names.index("seq")), names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    q, k, v = (contract(x, W, "chans") for W in (W_q, W_k, W_v))
    if "seq" not in q[1]:
        raise ValueError("seq: missing in x")
    mixed = attend(rename(q, "seq", "query"), k, v)
    y = rename(contract(W_o, mixed, "val", "head"), "query", "seq")
    return y[0].permute([y[1].index(n) for n in x[1]]), x[1]
