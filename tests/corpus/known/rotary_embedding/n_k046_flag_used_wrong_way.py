# mistake: flag_inverted
import torch
from torch import Tensor


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rotate_every_two(x):
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d_head = x.shape[-1]
    if d_head % 2 != 0:
        raise ValueError("odd d_head")
    if positions.ndim != 1 or positions.shape[0] != x.shape[-3]:
        raise ValueError("wrong number of positions")
    inv_freq = 1.0 / base ** (torch.arange(0, d_head, 2, device=x.device).double() / d_head)
    freqs = torch.outer(positions.double(), inv_freq)
    if interleaved:
        emb = torch.cat((freqs, freqs), dim=-1)[:, None, :]
        other = rotate_half(x)
    else:
        emb = freqs.repeat_interleave(2, dim=-1)[:, None, :]
        other = rotate_every_two(x)
    return (x * emb.cos() + other * emb.sin()).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions).transpose(-3, -2)
    k = rotate(keys, positions).transpose(-3, -2)
    v = values.transpose(-3, -2)
    attn = torch.softmax(q @ k.mT / queries.shape[-1] ** 0.5, dim=-1)
    return (attn @ v).transpose(-3, -2)
