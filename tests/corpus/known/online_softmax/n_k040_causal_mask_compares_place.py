# mistake: causal_within_tile
import torch
from torch import Tensor

NEG = float("-inf")


class Running:
    """The running maximum, the running total and, for attention, the running output of each row."""

    def __init__(self, maximum: Tensor, total: Tensor, output: Tensor | None = None):
        self.m = maximum
        self.t = total
        self.o = output

    def update(self, scores: Tensor, values: Tensor | None = None) -> None:
        m_new = torch.maximum(self.m, scores.detach().max(dim=-1).values)
        base = m_new.masked_fill(m_new == NEG, 0.0)
        p = torch.exp(scores - base[..., None])
        correction = torch.exp(self.m - base)
        self.t = self.t * correction + p.sum(-1)
        if values is not None:
            self.o = self.o * correction[..., None] + p @ values
        self.m = m_new


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    first = chunks[0]
    exact = torch.float64 if first.dtype == torch.float64 else torch.float32
    if state is None:
        zero = first[..., 0].detach().to(exact) * 0
        run = Running(torch.full_like(zero, NEG), torch.zeros_like(zero))
    else:
        run = Running(state[0].detach().to(exact), state[1].to(exact))
    for chunk in chunks:
        run.update(chunk.to(exact))
    return run.m.to(first.dtype), run.t.to(first.dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be at least 1")
    exact = torch.float64 if Q.dtype == torch.float64 else torch.float32
    nq, nk, dv = Q.shape[-2], K.shape[-2], V.shape[-1]
    q = Q.to(exact) * Q.shape[-1] ** -0.5
    rows = q.shape[:-1]
    run = Running(q.new_full(rows, NEG), q.new_zeros(rows), q.new_zeros(*rows, dv))
    i = torch.arange(nq, device=Q.device)[:, None]
    for lo in range(0, nk, tile):
        hi = min(lo + tile, nk)
        if causal and lo > nq - 1:
            break  # nobody may look at these keys
        s = q @ K[..., lo:hi, :].to(exact).transpose(-1, -2)
        if causal:
            j = torch.arange(hi - lo, device=Q.device)[None, :]
            s = s.masked_fill(j > i, NEG)
        run.update(s, V[..., lo:hi, :].to(exact))
    return (run.o / run.t[..., None]).to(Q.dtype)
