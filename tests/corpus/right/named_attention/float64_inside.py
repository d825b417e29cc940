# right: attention in float64 inside with a softmax by hand, cast back at the end, letters for einsum from the string module
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


from string import ascii_letters  # noqa: E402


def _sizes(x: Named) -> dict[str, int]:
    tensor, names = x
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"axis {twice} twice")
    return dict(zip(names, tensor.shape))


def contract(left: Named, right: Named, *over: str) -> Named:
    one, two = _sizes(left), _sizes(right)
    try:
        for name in over:
            one[name], two[name]
    except KeyError as error:
        raise ValueError(f"no axis {error.args[0]} to sum over") from error
    wrong = [name for name in one if one[name] != two.get(name, one[name])]
    if wrong:
        raise ValueError("different sizes of " + ", ".join(wrong))
    letters = dict(zip(one | two, ascii_letters))
    kept = [name for name in letters if name not in over]
    spell = lambda names: "".join(letters[name] for name in names)  # noqa: E731
    formula = f"{spell(left[1])},{spell(right[1])}->{spell(kept)}"
    result = torch.einsum(formula, left[0].double(), right[0].double())
    return result.to(left[0].dtype), tuple(kept)


def _double(x: Named) -> Named:
    return x[0].double(), x[1]


def attend(query: Named, key: Named, value: Named) -> Named:
    dtype = value[0].dtype
    query, key, value = _double(query), _double(key), _double(value)
    if "seq" in _sizes(query):
        raise ValueError("seq in the query")
    if "seq" not in _sizes(key):
        raise ValueError("no axis seq in the key")
    if "seq" not in _sizes(value):
        raise ValueError("no axis seq in the value")
    scores, names = contract(query, key, "key")
    dim = names.index("seq")
    scores = scores / math.sqrt(_sizes(query)["key"])
    scores = scores - scores.max(dim=dim, keepdim=True).values
    powers = torch.exp(scores)
    weights = powers / powers.sum(dim=dim, keepdim=True)
    result, names = contract((weights, names), value, "seq")
    return result.to(dtype), names


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    if "seq" not in _sizes(x):
        raise ValueError("no axis seq in x")
    roles = {"W_q": (W_q, "key"), "W_k": (W_k, "key"), "W_v": (W_v, "val"), "W_o": (W_o, "val")}
    for role, (w, last) in roles.items():
        for name in {"head", "chans", last} - set(w[1]):
            raise ValueError(f"no axis {name} in {role}")
    mixed = attend(
        rename(contract(x, W_q, "chans"), "seq", "query"),
        contract(x, W_k, "chans"),
        contract(x, W_v, "chans"),
    )
    return rename(contract(W_o, mixed, "head", "val"), "query", "seq")
