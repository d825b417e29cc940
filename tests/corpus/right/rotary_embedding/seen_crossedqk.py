# right: the twin of one with a mistake, crossedqk
# seen: hpcaitech/ColossalAI pull 6429: where queries and keys are rotated together, the second half of the queries is made from the keys and the first half of the keys from the queries.
import torch
from torch import Tensor


def _cos_sin(x: Tensor, positions: Tensor, base: float) -> tuple[Tensor, Tensor]:
    if x.shape[-1] % 2:
        raise ValueError("d_head is odd")
    if positions.ndim != 1 or len(positions) != x.shape[-3]:
        raise ValueError("positions do not fit the tokens")
    acc = torch.float64 if x.dtype is torch.float64 else torch.float32
    i = torch.arange(x.shape[-1] // 2, dtype=acc, device=x.device)
    theta = positions.to(device=x.device, dtype=acc)[:, None, None]
    theta = theta * torch.pow(torch.tensor(base, dtype=acc, device=x.device), -2 * i / x.shape[-1])
    return theta.cos(), theta.sin()


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    cos, sin = _cos_sin(x, positions, base)
    h = x.shape[-1] // 2
    first = slice(0, None, 2) if interleaved else slice(0, h)
    second = slice(1, None, 2) if interleaved else slice(h, None)
    a, b = x[..., first].to(cos.dtype), x[..., second].to(cos.dtype)
    new_a, new_b = a * cos - b * sin, a * sin + b * cos
    if interleaved:
        return torch.stack((new_a, new_b), -1).flatten(-2).to(x.dtype)
    return torch.cat((new_a, new_b), -1).to(x.dtype)


def _rotate_both(q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys at once. The order of the columns does not matter for their products."""
    cos, sin = _cos_sin(q, positions, 10000.0)
    q0, q1 = q[..., 0::2].to(cos.dtype), q[..., 1::2].to(cos.dtype)
    k0, k1 = k[..., 0::2].to(cos.dtype), k[..., 1::2].to(cos.dtype)
    q_out = torch.cat((q0 * cos - q1 * sin, q0 * sin + q1 * cos), -1)
    k_out = torch.cat((k0 * cos - k1 * sin, k0 * sin + k1 * cos), -1)
    return q_out.to(q.dtype), k_out.to(k.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = _rotate_both(queries, keys, positions)
    scores = torch.einsum("...ihd,...jhd->...hij", q, k) * queries.shape[-1] ** -0.5
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("...hij,...jhv->...ihv", weights, values)
