import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _sizes(x: Named) -> dict[str, int]:
    tensor, names = x
    sizes: dict[str, int] = {}
    for name, size in zip(names, tensor.shape, strict=True):
        if name in sizes:
            raise ValueError(f"axis {name!r} occurs twice in {names}")
        sizes[name] = size
    return sizes


def contract(left: Named, right: Named, *over: str) -> Named:
    a, b = _sizes(left), _sizes(right)
    for name in over:
        if name not in a or name not in b:
            raise ValueError(f"both tensors need the axis {name!r}: {left[1]} and {right[1]}")
    for name in a.keys() & b.keys():
        if a[name] != b[name]:
            raise ValueError(f"axis {name!r} has the sizes {a[name]} and {b[name]}")
    number = {name: i for i, name in enumerate({**a, **b})}
    kept = tuple(name for name in number if name not in over)
    product = torch.einsum(
        left[0], [number[n] for n in a], right[0], [number[n] for n in b], [number[n] for n in kept]
    )
    return product, kept


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("the query has the axis 'seq'; rename it")
    if "seq" not in key[1]:
        raise ValueError("the key lacks the axis 'seq'")
    scores, names = contract(query, key, "key")
    scores = scores * _sizes(key)["key"] ** -0.5
    weights = scores.softmax(dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    context = attend(
        contract(rename(x, "seq", "query"), W_q, "chans"),
        contract(x, W_k, "chans"),
        contract(x, W_v, "chans"),
    )
    return rename(contract(context, W_o, "head", "val"), "query", "seq")
