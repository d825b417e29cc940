# mistake: keys_turned_back
import torch
from torch import Tensor


def _as_complex(x: Tensor, interleaved: bool) -> Tensor:
    x = x.double()
    if interleaved:
        return torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    half = x.shape[-1] // 2
    return torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous())


def _as_real(z: Tensor, interleaved: bool) -> Tensor:
    parts = torch.view_as_real(z)
    return (parts if interleaved else parts.mT).flatten(-2)


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    if x.size(-1) % 2 == 1:
        raise ValueError("cannot pair an odd number of columns")
    if positions.size(0) != x.size(-3):
        raise ValueError("positions do not fit the tokens")
    k = torch.arange(0, x.size(-1), 2, device=x.device).double()
    angle = positions.double().unsqueeze(1) * base ** (-k / x.size(-1))
    z = _as_complex(x, interleaved) * torch.exp(1j * angle).unsqueeze(1)
    return _as_real(z, interleaved).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    positions = positions.double()
    q = rotate(queries, positions)
    k = rotate(keys, -positions)
    scores = torch.einsum("...ihd,...jhd->...hij", q, k) * q.size(-1) ** -0.5
    return torch.einsum("...hij,...jhv->...ihv", torch.softmax(scores, -1), values)
