# mistake: aligned_by_reshape
import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def contract(left: Named, right: Named, *over: str) -> Named:
    size = {}
    for tensor, names in (left, right):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name} twice in {names}")
        for name in over:
            if name not in names:
                raise ValueError(f"{name} not in {names}")
        for name, n in zip(names, tensor.shape):
            if size.get(name, n) != n:
                raise ValueError(f"{name} is {size[name]} and {n}")
            size[name] = n
    shared = [n for n in left[1] if n in right[1] and n not in over]
    l_only = [n for n in left[1] if n not in right[1]]
    r_only = [n for n in right[1] if n not in left[1]]

    def line_up(x: Named, *groups: list[str]) -> Tensor:
        return x[0].reshape([numel(size, group) for group in groups])

    A = line_up(left, shared, l_only, list(over))
    B = line_up(right, shared, list(over), r_only)
    names = shared + l_only + r_only
    return torch.bmm(A, B).reshape([size[n] for n in names]), tuple(names)


def numel(size: dict, names: list[str]) -> int:
    n = 1
    for name in names:
        n *= size[name]
    return n


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("seq is in the query")
    if "seq" not in key[1]:
        raise ValueError("seq is not in the key")
    scores, names = contract(query, key, "key")
    scores = scores / key[0].shape[key[1].index("key")] ** 0.5
    weights = torch.softmax(scores, dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    q = contract(rename(x, "seq", "query"), W_q, "chans")
    heads = attend(q, contract(x, W_k, "chans"), contract(x, W_v, "chans"))
    return rename(contract(heads, W_o, "head", "val"), "query", "seq")
