# mistake: minus_inf_is_nan
# while a row has only scores of -inf, the difference -inf - -inf makes its total nan, and it stays nan
import math

import torch
from torch import Tensor


def online_softmax(chunks, state=None):
    if state is None:
        shape = chunks[0].shape[:-1]
        m = chunks[0].new_full(shape, -math.inf)
        total = chunks[0].new_zeros(shape)
    else:
        m, total = state
        m = m.detach()
    for chunk in chunks:
        m_new = torch.maximum(m, chunk.detach().amax(-1))
        total = total * torch.exp(m - m_new) + torch.exp(chunk - m_new[..., None]).sum(-1)
        m = m_new
    return m, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile < 1")
    n_q, n_k, d = Q.shape[-2], K.shape[-2], Q.shape[-1]
    m = Q.new_full((*Q.shape[:-1], 1), -math.inf)
    total = torch.zeros_like(m)
    out = Q.new_zeros(*Q.shape[:-1], V.shape[-1])
    i = torch.arange(n_q, device=Q.device)[:, None]
    for start in range(0, n_k, tile):
        end = min(start + tile, n_k)
        s = Q @ K[..., start:end, :].mT / math.sqrt(d)
        if causal:
            s = s.masked_fill(torch.arange(start, end, device=Q.device)[None] > i, -math.inf)
        m_new = torch.maximum(m, s.detach().amax(-1, keepdim=True))
        p = torch.exp(s - m_new)
        fix = torch.exp(m - m_new)
        total = total * fix + p.sum(-1, keepdim=True)
        out = out * fix + p @ V[..., start:end, :]
        m = m_new
    return out / total
