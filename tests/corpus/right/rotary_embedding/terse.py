"""Rotary embedding, complex numbers times one polar."""

import torch


def rotate(x, positions, base=10000.0, interleaved=True):
    if x.shape[-1] % 2 or positions.shape != x.shape[-3:-2]:
        raise ValueError(f"{x.shape=} {positions.shape=}")
    t = positions.double()[:, None, None] / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    z = torch.complex(a.double(), b.double()) * torch.polar(torch.ones_like(t), t)
    y = (z.real, z.imag)
    return (torch.stack(y, -1).flatten(-2) if interleaved else torch.cat(y, -1)).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    q, k = (rotate(x, positions).movedim(-2, -3) for x in (queries, keys))
    return (
        (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1).matmul(values.movedim(-2, -3)).movedim(-3, -2)
    )
