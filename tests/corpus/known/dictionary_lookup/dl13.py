# mistake: default_temp_of_the_lookup
# in words: attention shares the sharp default of lookup
import torch
from torch import Tensor

SHARP = 0.01


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = SHARP) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    scores = torch.einsum("...nd,...md->...nm", Q, K).div(temp)
    scores = scores - scores.amax(dim=-1, keepdim=True)
    unnorm = scores.exp()
    return (unnorm @ V) / unnorm.sum(dim=-1, keepdim=True)


def lookup(entries: dict[int, list[float]], key: int, temp: float = SHARP) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    names = torch.tensor(sorted(entries))
    V = torch.tensor([entries[k] for k in sorted(entries)], dtype=torch.float32)
    K = (names[:, None] == names[None, :]).to(V.dtype)
    Q = (names == key).to(V.dtype)[None]
    return attention(Q, K, V, temp)[0]
