import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def _producto(filas: Tensor, columnas: Tensor) -> Tensor:
    """Cada grupo de cabezas de `filas` por su matriz: un solo bmm sobre lote * kv."""
    lote, cabezas, n, d = filas.shape
    _, kv, d2, m = columnas.shape
    assert d == d2
    if cabezas % kv != 0:
        raise ValueError("num_kv_heads no divide a num_heads")
    grupo = cabezas // kv
    izquierda = filas.reshape(lote * kv, grupo * n, d)
    derecha = columnas.flatten(0, 1)
    return torch.bmm(izquierda, derecha).view(lote, cabezas, n, m)


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return _producto(queries, keys.transpose(2, 3)).div(math.sqrt(queries.size(3)))


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    return _producto(weights, values)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float,
                 num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads no divide a d_out")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_kv_heads no divide a num_heads")
        self.h, self.kv, self.maximo, self.p = num_heads, num_kv_heads, context_length, dropout
        ancho = d_out // num_heads * num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, ancho, bias=False)
        self.W_value = nn.Linear(d_in, ancho, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.maximo:
            raise ValueError("demasiadas fichas")
        q = self.W_query(x).unflatten(2, (self.h, -1)).movedim(2, 1)
        k = self.W_key(x).unflatten(2, (self.kv, -1)).movedim(2, 1)
        v = self.W_value(x).unflatten(2, (self.kv, -1)).movedim(2, 1)
        t = torch.arange(n, device=x.device)
        s = grouped_scores(q, k).masked_fill(t[None, :] > t[:, None], -math.inf)
        s = s if s.dtype == torch.float64 else s.float()  # exponenciales en float32
        e = torch.exp(s - s.amax(-1, keepdim=True).detach())
        w = F.dropout((e / e.sum(-1, keepdim=True)).to(v.dtype), self.p, self.training)
        return self.out_proj(grouped_context(w, v).movedim(1, 2).flatten(2))
