# mistake: minus_inf_is_nan

import torch
from torch import Tensor


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    rest = chunks
    if state is None:
        first, *rest = chunks
        maximum = first.detach().max(dim=-1).values
        total = torch.exp(first - maximum.unsqueeze(-1)).sum(dim=-1)
    else:
        maximum, total = state[0].detach(), state[1]
    for chunk in rest:
        larger = torch.maximum(maximum, chunk.detach().max(dim=-1).values)
        total = total * torch.exp(maximum - larger)
        total = total + torch.exp(chunk - larger.unsqueeze(-1)).sum(dim=-1)
        maximum = larger
    return maximum, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(f"tile is {tile}")
    scale = Q.shape[-1] ** -0.5
    dtype = Q.dtype
    if dtype == torch.bfloat16:
        Q, K, V = Q.float(), K.float(), V.float()
    query_places = torch.arange(Q.shape[-2], device=Q.device).unsqueeze(-1)
    maximum = total = context = None
    for begin in range(0, K.shape[-2], tile):
        keys, values = K[..., begin : begin + tile, :], V[..., begin : begin + tile, :]
        scores = torch.einsum("...qd,...kd->...qk", Q, keys) * scale
        if causal:
            key_places = begin + torch.arange(keys.shape[-2], device=Q.device)
            scores = torch.where(key_places <= query_places, scores, -torch.inf)
        if maximum is None:
            maximum, total = online_softmax([scores])
            context = torch.exp(scores - maximum.unsqueeze(-1)) @ values
        else:
            new_maximum, total = online_softmax([scores], (maximum, total))
            factor = torch.exp(maximum - new_maximum).unsqueeze(-1)
            context = context * factor + torch.exp(scores - new_maximum.unsqueeze(-1)) @ values
            maximum = new_maximum
    return (context / total.unsqueeze(-1)).to(dtype)
