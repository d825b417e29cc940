# note: torch.einsum in its sublist form with numbers from a dictionary, structural pattern matching for the checks, and the softmax by hand
import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _refuse(kind: str, name: str):
    match kind:
        case "missing":
            raise ValueError(f"missing axis: {name}")
        case "doubled":
            raise ValueError(f"doubled axis: {name}")
        case "unequal":
            raise ValueError(f"two sizes of the axis: {name}")
        case _:
            raise ValueError(f"axis not wanted here: {name}")


def contract(left: Named, right: Named, *over: str) -> Named:
    number: dict[str, int] = {}
    size: dict[str, int] = {}
    for tensor, names in (left, right):
        for i, name in enumerate(names):
            if names.count(name) > 1:
                _refuse("doubled", name)
            number.setdefault(name, len(number))
            if size.setdefault(name, tensor.size(i)) != tensor.size(i):
                _refuse("unequal", name)
        for name in over:
            if name not in names:
                _refuse("missing", name)
    kept = tuple(name for name in number if name not in over)
    result = torch.einsum(
        left[0],
        [number[n] for n in left[1]],
        right[0],
        [number[n] for n in right[1]],
        [number[n] for n in kept],
    )
    return result, kept


def attend(query: Named, key: Named, value: Named) -> Named:
    match ("seq" in query[1], "seq" in key[1]):
        case (True, _):
            _refuse("unwanted", "seq")
        case (_, False):
            _refuse("missing", "seq")
    scores, names = contract(query, key, "key")
    scores = scores / key[0].size(key[1].index("key")) ** 0.5
    axis = names.index("seq")
    e = torch.exp(scores - scores.detach().amax(axis, keepdim=True))
    return contract((e / e.sum(axis, keepdim=True), names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    as_query = rename(x, "seq", "query")
    heads = attend(
        contract(W_q, as_query, "chans"), contract(W_k, x, "chans"), contract(W_v, x, "chans")
    )
    return rename(contract(heads, W_o, "val", "head"), "query", "seq")
