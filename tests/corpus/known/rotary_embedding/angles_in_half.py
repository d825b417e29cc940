# mistake: angles_in_half_precision
# the angles are computed in the dtype of x, so large positions lose their digits in half precision
import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    n_tokens, _, d_head = x.shape[-3:]
    if d_head % 2 == 1:
        raise ValueError("d_head is odd")
    if len(positions) != n_tokens:
        raise ValueError("one position per token, please")
    exponents = torch.arange(0, d_head, 2).to(x) / d_head
    angles = positions.to(x)[:, None, None] / base**exponents
    cos, sin = angles.cos(), angles.sin()
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = rotate(queries, positions), rotate(keys, positions)
    scores = torch.einsum("...ihd,...jhd->...hij", q, k) / queries.shape[-1] ** 0.5
    return torch.einsum("...hij,...jhd->...ihd", scores.softmax(dim=-1), values)
