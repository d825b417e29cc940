# mistake: minus_inf_is_nan
import torch
from torch import Tensor


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    acc = torch.promote_types(dtype, torch.float32)
    todo = iter(chunks)
    if state is None:
        chunk = next(todo).to(acc)
        maximum = chunk.detach().amax(-1)
        total = (chunk - maximum[..., None]).exp().sum(-1)
    else:
        maximum, total = state[0].detach().to(acc), state[1].to(acc)
    for chunk in todo:
        chunk = chunk.to(acc)
        larger = torch.maximum(maximum, chunk.detach().amax(-1))
        total = total * (maximum - larger).exp() + (chunk - larger[..., None]).exp().sum(-1)
        maximum = larger
    return maximum.to(dtype), total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile is too small")
    acc = torch.promote_types(Q.dtype, torch.float32)
    scaled = Q.to(acc) / Q.shape[-1] ** 0.5
    i = torch.arange(Q.shape[-2], device=Q.device)[:, None]

    def scores_of(start: int) -> Tensor:
        s = torch.einsum("...id,...jd->...ij", scaled, K[..., start : start + tile, :].to(acc))
        if causal:
            j = torch.arange(start, start + s.shape[-1], device=Q.device)
            s = s.masked_fill(i < j, -torch.inf)
        return s

    s = scores_of(0)  # key 0 is visible to every query, so the maximum is finite from here on
    m = s.detach().amax(-1, keepdim=True)
    e = (s - m).exp()
    total, out = e.sum(-1, keepdim=True), e @ V[..., :tile, :].to(acc)
    for start in range(tile, K.shape[-2], tile):
        s = scores_of(start)
        new = torch.maximum(m, s.detach().amax(-1, keepdim=True))
        e, f = (s - new).exp(), (m - new).exp()
        total = total * f + e.sum(-1, keepdim=True)
        out = out * f + e @ V[..., start : start + tile, :].to(acc)
        m = new
    return (out / total).to(Q.dtype)
