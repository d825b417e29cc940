# right: a pair is a complex number, which is multiplied by one of length one
import torch


def rotate(x, positions, base=10000.0, interleaved=True):
    size = x.size(-1)
    if size & 1:
        raise ValueError("d_head must be even")
    if positions.ndim != 1 or len(positions) != x.size(-3):
        raise ValueError("one position for each token, please")
    rate = torch.logspace(0, -1, size // 2 + 1, base=base, dtype=torch.float64, device=x.device)
    angle = torch.outer(positions.double(), rate[:-1]).unsqueeze(1)
    turn = torch.polar(torch.ones_like(angle), angle)
    layout = (size // 2, 2) if interleaved else (2, size // 2)
    pairs = x.double().unflatten(-1, layout)
    if not interleaved:
        pairs = pairs.mT
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    if not interleaved:
        turned = turned.mT
    return turned.flatten(-2).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    q, k = (rotate(t, positions) for t in (queries, keys))
    scores = torch.einsum("...qhd,...khd->...hqk", q, k).mul(queries.size(-1) ** -0.5)
    return torch.einsum("...hqk,...khv->...qhv", scores.softmax(-1), values)
