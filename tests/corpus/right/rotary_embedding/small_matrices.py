# right: one 2 x 2 matrix for each position and pair, applied by einsum; columns are found by an index
import math

import torch


def turns(positions, pairs, base):
    i = torch.arange(pairs, device=positions.device, dtype=torch.float64)
    angle = positions.to(torch.float64).unsqueeze(-1) * torch.exp(-i / pairs * math.log(base))
    rows = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=-1)
    return rows.unflatten(-1, (2, 2))


def rotate(x, positions, base=10000.0, interleaved=True):
    *_, n_tokens, _, d_head = x.shape
    if d_head % 2 == 1 or tuple(positions.shape) != (n_tokens,):
        raise ValueError(f"cannot turn {tuple(x.shape)} by {tuple(positions.shape)} positions")
    columns = torch.arange(d_head, device=x.device)
    columns = columns.view(-1, 2) if interleaved else columns.view(2, -1).T
    matrices = turns(positions.to(x.device), d_head // 2, base)
    pairs = x[..., columns].to(torch.float64)
    turned = torch.einsum("npij,...nhpj->...nhpi", matrices, pairs).flatten(-2)
    back = torch.argsort(columns.flatten())
    return turned[..., back].to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    by_head = [t.movedim(-2, -3) for t in (rotate(queries, positions), rotate(keys, positions), values)]
    q, k, v = by_head
    scores = torch.matmul(q, k.mT) / math.sqrt(q.shape[-1])
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return (torch.matmul(powers, v) / powers.sum(-1, keepdim=True)).movedim(-3, -2)
