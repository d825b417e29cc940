# mistake: angles_counted_over_heads
# seen: xformers issue 841, open_lm issue 4, smolGPT issue 22: the angles run along the axis of the heads instead of the tokens, so all tokens are turned alike and the heads differently.
import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d = x.size(-1)
    if d % 2 == 1:
        raise ValueError("d_head must be even")
    if positions.dim() != 1 or positions.numel() != x.size(-3):
        raise ValueError("one position for each token, please")
    wide = torch.promote_types(x.dtype, torch.float32)
    pair = torch.arange(d // 2, device=x.device, dtype=wide)
    position = positions.to(device=x.device, dtype=wide)
    angle = position[:, None] / base ** (2 * pair / d)
    seq_len = x.size(-2)
    angle = angle[:seq_len]
    cos, sin = torch.cos(angle), torch.sin(angle)
    y = x.to(wide)
    if interleaved:
        a, b = y[..., ::2], y[..., 1::2]
        out = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).reshape(x.shape)
    else:
        a, b = y.chunk(2, dim=-1)
        out = torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
    return out.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions).transpose(-3, -2)
    k = rotate(keys, positions).transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / q.size(-1) ** 0.5, dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
