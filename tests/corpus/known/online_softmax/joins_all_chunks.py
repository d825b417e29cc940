# mistake: chunks_joined
# all chunks are joined to one tensor first, so online_softmax holds as many numbers as all chunks have
import math

import torch
from torch import Tensor


def online_softmax(chunks: list[Tensor], state=None) -> tuple[Tensor, Tensor]:
    scores = torch.cat(chunks, dim=-1)
    m = scores.detach().max(dim=-1).values
    if state is not None:
        m = torch.maximum(m, state[0].detach())
    base = torch.nan_to_num(m, neginf=0.0)
    total = torch.exp(scores - base[..., None]).sum(-1)
    if state is not None:
        total = total + state[1] * torch.exp(state[0].detach() - base)
    return m, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(tile)
    queries = torch.arange(Q.shape[-2], device=Q.device).unsqueeze(1)
    state, out = None, None
    for lo in range(0, K.shape[-2], tile):
        k, v = K[..., lo : lo + tile, :], V[..., lo : lo + tile, :]
        s = Q @ k.mT / math.sqrt(K.shape[-1])
        if causal:
            keys = lo + torch.arange(k.shape[-2], device=Q.device)
            s = s.masked_fill(keys > queries, -math.inf)
        old = state
        state = online_softmax([s], state)
        base = state[0].unsqueeze(-1)
        part = torch.exp(s - base) @ v
        out = part if old is None else out * torch.exp(old[0].unsqueeze(-1) - base) + part
    return out / state[1].unsqueeze(-1)
