# mistake: half_detached

import torch
from torch import Tensor


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    out_dtype = chunks[0].dtype
    if state is not None:
        running_max, running_sum = state
    else:
        running_max = torch.full_like(chunks[0][..., 0], -torch.inf)
        running_sum = torch.zeros_like(running_max)
    if out_dtype == torch.bfloat16:
        running_max, running_sum = running_max.float(), running_sum.float()
    for chunk in chunks:
        chunk = chunk.to(running_sum.dtype)
        new_max = torch.maximum(running_max, chunk.amax(-1))
        shift = new_max.detach()
        shift = shift.masked_fill(shift.isneginf(), 0)
        running_sum = running_sum * (running_max.detach() - shift).exp()
        running_sum = running_sum + (chunk - shift[..., None]).exp().sum(-1)
        running_max = new_max
    return running_max.to(out_dtype), running_sum.to(out_dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("a tile has at least one key")
    out_dtype = Q.dtype
    if out_dtype == torch.bfloat16:
        Q, K, V = (t.float() for t in (Q, K, V))
    i = torch.arange(Q.shape[-2], device=Q.device)[:, None]
    top = torch.full_like(Q[..., 0], -torch.inf)
    total = torch.zeros_like(top)
    out = 0
    for j0 in range(0, K.shape[-2], tile):
        kt = K[..., j0 : j0 + tile, :]
        scores = Q @ kt.mT / Q.shape[-1] ** 0.5
        if causal:
            j = torch.arange(j0, j0 + kt.shape[-2], device=Q.device)
            scores = scores.masked_fill(j > i, -torch.inf)
        new_top, total = online_softmax([scores], (top, total))
        new_top = new_top.detach()
        shift = new_top.masked_fill(new_top.isneginf(), 0)[..., None]
        out = out * (top[..., None] - shift).exp() + (scores - shift).exp() @ V[..., j0 : j0 + tile, :]
        top = new_top
    return (out / total[..., None]).to(out_dtype)
