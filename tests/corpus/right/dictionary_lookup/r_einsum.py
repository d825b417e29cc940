"""Weiche Suche in einem Wörterbuch, mit einsum."""

import torch
from torch import Tensor


def _pruefe(temp: float) -> None:
    # "not >" fängt auch nan ab
    if not temp > 0:
        raise ValueError(f"temp muss positiv sein, nicht {temp}")


def _gewichte(punkte: Tensor, temp: float) -> Tensor:
    # Zuerst das Maximum der Zeile abziehen, dann teilen: so kann nichts überlaufen.
    verschoben = punkte - punkte.amax(dim=-1, keepdim=True)
    e = torch.exp(verschoben / temp)
    return e / e.sum(dim=-1, keepdim=True)


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    _pruefe(temp)
    punkte = torch.einsum("...qd,...kd->...qk", Q, K)
    return torch.einsum("...qk,...kv->...qv", _gewichte(punkte, temp), V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    _pruefe(temp)
    if key not in entries:
        raise KeyError(key)
    platz = {k: n for n, k in enumerate(entries)}
    einheiten = torch.eye(len(platz), dtype=torch.float32)
    werte = torch.tensor([list(v) for v in entries.values()], dtype=torch.float32)
    frage = einheiten.narrow(0, platz[key], 1)
    return attention(frage, einheiten, werte, temp=temp).squeeze(0)
