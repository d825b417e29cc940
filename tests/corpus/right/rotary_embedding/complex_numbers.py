# note: complex numbers; halves by a permutation of columns
import math

import torch


def rotate(x, positions, base=10000.0, interleaved=True):
    *lead, n_tokens, num_heads, d_head = x.shape
    if d_head % 2 or tuple(positions.shape) != (n_tokens,):
        raise ValueError(f"{tuple(x.shape)} {tuple(positions.shape)}")
    if not interleaved:
        order = torch.arange(d_head, device=x.device).view(2, -1).T.reshape(-1)
        return rotate(x[..., order], positions, base)[..., torch.argsort(order)]
    theta = positions.double()[:, None] * float(base) ** (-torch.arange(0, d_head, 2).double() / d_head)
    turn = torch.polar(torch.ones_like(theta), theta).unsqueeze(-2)
    z = torch.view_as_complex(x.double().reshape(*lead, n_tokens, num_heads, -1, 2).contiguous())
    return torch.view_as_real(z * turn).flatten(start_dim=-2).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    q, k = (rotate(t, positions).movedim(-2, -3) for t in (queries, keys))
    scores = torch.matmul(q * q.shape[-1] ** -0.5, k.mT)
    return torch.matmul(scores.softmax(dim=-1), values.movedim(-2, -3)).movedim(-3, -2)
