# mistake: inverse_rescale
import torch
from torch import Tensor


def _finite(m: Tensor) -> Tensor:
    return torch.nan_to_num(m, neginf=0.0)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    maximum, total = state if state is not None else (None, None)
    for chunk in chunks:
        peak = chunk.detach().amax(dim=-1)
        if maximum is None:
            maximum, total = peak, (chunk - _finite(peak)[..., None]).exp().sum(-1)
            continue
        old = maximum.detach()
        maximum = torch.maximum(old, peak)
        base = _finite(maximum)
        correction = torch.where(old == -torch.inf, torch.ones_like(old), (base - _finite(old)).exp())
        total = total * correction + (chunk - base[..., None]).exp().sum(-1)
    return maximum, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile")
    d = Q.shape[-1]
    place = torch.arange(Q.shape[-2], device=Q.device)[:, None]
    m = torch.full_like(Q[..., :1], -torch.inf).detach()
    z, o = 0.0, 0.0
    for a in range(0, K.shape[-2], tile):
        s = torch.matmul(Q, K[..., a : a + tile, :].mT) / d**0.5
        if causal:
            where = torch.arange(a, a + s.shape[-1], device=Q.device)
            s = torch.where(where <= place, s, -torch.inf)
        m_next = torch.maximum(m, s.detach().amax(-1, keepdim=True))
        f = torch.exp(m - m_next)
        e = torch.exp(s - m_next)
        z, o, m = z * f + e.sum(-1, keepdim=True), o * f + e @ V[..., a : a + tile, :], m_next
    return o / z
