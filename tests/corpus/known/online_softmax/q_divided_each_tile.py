# mistake: divided_in_every_tile
import torch
from torch import Tensor


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    kind = chunks[0].dtype
    work = torch.float32 if kind in (torch.bfloat16, torch.float16) else kind
    if state is None:
        lead = chunks[0].shape[:-1]
        m = torch.full(lead, float("-inf"), dtype=work, device=chunks[0].device)
        t = torch.zeros(lead, dtype=work, device=chunks[0].device)
    else:
        m, t = state
        m, t = m.detach().to(work), t.to(work)
    for chunk in chunks:
        m, t, _, _ = absorb(m, t, chunk.to(work))
    return m.to(kind), t.to(kind)


def absorb(m, t, scores):
    best = torch.max(m, scores.detach().max(-1)[0])
    ref = torch.where(best > float("-inf"), best, 0.0)
    e = torch.exp(scores - ref.unsqueeze(-1))
    shrink = torch.exp(m - ref)
    return best, t * shrink + e.sum(-1), e, shrink


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("need tile >= 1")
    work = torch.float32 if Q.dtype in (torch.bfloat16, torch.float16) else Q.dtype
    n_keys = K.shape[-2]
    m = torch.full(Q.shape[:-1], float("-inf"), dtype=work, device=Q.device)
    t = torch.zeros(Q.shape[:-1], dtype=work, device=Q.device)
    out = 0
    for a in range(0, n_keys, tile):
        b = min(a + tile, n_keys)
        scores = torch.einsum("...qd,...kd->...qk", Q.to(work), K[..., a:b, :].to(work))
        scores = scores / Q.shape[-1] ** 0.5
        if causal:
            i = torch.arange(Q.shape[-2], device=Q.device)
            j = torch.arange(a, b, device=Q.device)
            scores = scores.masked_fill(i[:, None] < j[None, :], float("-inf"))
        m, t, e, shrink = absorb(m, t, scores)
        out = out * shrink.unsqueeze(-1) + (e / t.unsqueeze(-1)) @ V[..., a:b, :].to(work)
    return out.to(Q.dtype)
