from functools import reduce

import torch
from torch import Tensor

# Das Maximum bleibt hier ueberall im Graphen; in maximum + log(total) hebt es sich auf.
State = tuple[Tensor, Tensor]


def _breit(t: Tensor) -> Tensor:
    return t if t.dtype == torch.float64 else t.float()


def _abzug(m: Tensor) -> Tensor:
    return m.masked_fill(m == -torch.inf, 0.0)


def _schritt(zustand: State, stueck: Tensor) -> State:
    alt, summe = zustand
    stueck = _breit(stueck)
    neu = torch.maximum(alt, stueck.max(dim=-1).values)
    ab = _abzug(neu)
    # in leeren Zeilen: exp(-inf - 0) = 0
    return neu, summe * torch.exp(alt - ab) + torch.exp(stueck - ab[..., None]).sum(-1)


def online_softmax(chunks: list[Tensor], state: State | None = None) -> State:
    erstes = chunks[0]
    if state is None:
        leer = torch.full_like(erstes[..., 0], -torch.inf)
        state = (leer, torch.zeros_like(leer))
    maximum, total = reduce(_schritt, chunks, (_breit(state[0]), _breit(state[1])))
    return maximum.to(erstes.dtype), total.to(erstes.dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile <= 0:
        raise ValueError("tile muss mindestens 1 sein")
    q = _breit(Q) * Q.size(-1) ** -0.5
    zeile = torch.arange(q.size(-2), device=Q.device)
    hoch = torch.full_like(q[..., 0], -torch.inf)
    summe = torch.zeros_like(hoch)
    ausgabe = torch.zeros(*q.shape[:-1], V.size(-1), dtype=q.dtype, device=q.device)
    anfang = 0
    for k, v in zip(K.split(tile, dim=-2), V.split(tile, dim=-2)):
        punkte = torch.einsum("...qd,...kd->...qk", q, _breit(k))
        if causal:
            spalte = anfang + torch.arange(k.size(-2), device=Q.device)
            punkte = torch.where(spalte[None, :] <= zeile[:, None], punkte, -torch.inf)
        neu = torch.maximum(hoch, punkte.detach().amax(-1))
        ab = _abzug(neu)
        faktor = torch.exp(hoch - ab)
        e = torch.exp(punkte - ab[..., None])
        summe = summe * faktor + e.sum(-1)
        ausgabe = ausgabe * faktor[..., None] + torch.einsum("...qk,...kv->...qv", e, _breit(v))
        hoch, anfang = neu, anfang + k.size(-2)
    return (ausgabe / summe[..., None]).to(Q.dtype)
