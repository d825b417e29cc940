# mistake: half_detached
import torch
from torch import Tensor


def _zero_if_hidden(m: Tensor) -> Tensor:
    return torch.where(torch.isneginf(m), torch.zeros_like(m), m).detach()


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    for chunk in chunks:
        top = chunk.amax(dim=-1)
        if state is None:
            base = _zero_if_hidden(top)
            state = (top, (chunk - base[..., None]).exp().sum(dim=-1))
            continue
        maximum, total = state
        new = torch.maximum(maximum, top)
        base = _zero_if_hidden(new)
        correction = (maximum.detach() - base).exp()
        state = (new, total * correction + (chunk - base[..., None]).exp().sum(dim=-1))
    return state


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile")
    Q = Q * Q.shape[-1] ** -0.5
    state, acc = None, None
    for start in range(0, K.shape[-2], tile):
        stop = min(start + tile, K.shape[-2])
        s = Q @ K[..., start:stop, :].mT
        if causal:
            i = torch.arange(Q.shape[-2], device=Q.device)
            j = torch.arange(start, stop, device=Q.device)
            s = torch.where(j[None, :] <= i[:, None], s, torch.full_like(s, -torch.inf))
        old = state
        state = online_softmax([s], old)
        base = _zero_if_hidden(state[0])
        part = (s - base[..., None]).exp() @ V[..., start:stop, :]
        acc = part if acc is None else acc * (old[0].detach() - base).exp()[..., None] + part
    return acc / state[1][..., None]
