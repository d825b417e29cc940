# mistake: last_tile_lost
# the number of tiles is n_keys // tile, so the keys of a last, shorter tile are left out (only if there is no full tile, all keys make one)
import torch
from torch import Tensor

NEG = float("-inf")


def online_softmax(chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None):
    if state is None:
        state = (torch.full_like(chunks[0][..., 0], NEG), torch.zeros_like(chunks[0][..., 0]))
    m, z = state[0].detach(), state[1]
    for c in chunks:
        top = torch.maximum(m, c.detach().amax(-1))
        ref = torch.where(top == NEG, 0.0, top)
        z = z * torch.exp(m - ref) + torch.exp(c - ref.unsqueeze(-1)).sum(-1)
        m = top
    return m, z


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile")
    nq, nk, d = Q.shape[-2], K.shape[-2], Q.shape[-1]
    tile = min(tile, nk)
    m = torch.full((*Q.shape[:-1], 1), NEG, dtype=Q.dtype, device=Q.device)
    z = torch.zeros_like(m)
    o = torch.zeros((*Q.shape[:-1], V.shape[-1]), dtype=Q.dtype, device=Q.device)
    row = torch.arange(nq, device=Q.device).view(-1, 1)
    col = torch.arange(tile, device=Q.device).view(1, -1)
    for t in range(nk // tile):
        sl = slice(t * tile, (t + 1) * tile)
        s = Q @ K[..., sl, :].transpose(-2, -1) * d**-0.5
        if causal:
            s = s.masked_fill(col + t * tile > row, NEG)
        top = torch.maximum(m, s.detach().amax(-1, keepdim=True))
        c = torch.exp(m - top)
        p = torch.exp(s - top)
        z = z * c + p.sum(-1, keepdim=True)
        o = o * c + p @ V[..., sl, :]
        m = top
    return o / z
