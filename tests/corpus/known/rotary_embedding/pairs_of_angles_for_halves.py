# mistake: angles_of_the_other_pairs
import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    """Turn each pair of columns of x by an angle that grows with the token's position.

    x            (..., n_tokens, num_heads, d_head)
    positions    (n_tokens,)
    interleaved  whether a pair is two columns side by side, or one of each half
    returns      the shape and dtype of x

    Raises ValueError for an odd d_head, and for positions of another number than n_tokens.
    """
    *_, n_tokens, _, d_head = x.shape
    if d_head % 2:
        raise ValueError(f"d_head is {d_head}, but pairs need an even number of columns")
    if positions.shape != (n_tokens,):
        raise ValueError(f"{n_tokens} tokens, but positions of shape {tuple(positions.shape)}")
    # Half precision has too few digits for a position of thousands.
    dtype = torch.promote_types(x.dtype, torch.float32)  # of the angles
    exponents = torch.arange(0, d_head, 2, dtype=dtype, device=x.device) / d_head  # (n_pairs,)
    angles = positions.to(dtype)[:, None, None] / base**exponents  # (n_tokens, 1, n_pairs)
    if not interleaved:
        full = angles.repeat_interleave(2, dim=-1)
        half = d_head // 2
        turned_x = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
        return (x * full.cos() + turned_x * full.sin()).to(x.dtype)
    cos, sin = angles.cos(), angles.sin()  # (n_tokens, 1, n_pairs)
    shape, axis = ((-1, 2), -1) if interleaved else ((2, -1), -2)
    a, b = x.unflatten(-1, shape).unbind(axis)  # (..., n_tokens, num_heads, n_pairs)
    turned = a * cos - b * sin, a * sin + b * cos  # (..., n_tokens, num_heads, n_pairs), twice
    output = torch.stack(turned, dim=axis).flatten(-2)  # (..., n_tokens, num_heads, d_head)
    return output.to(x.dtype)  # (..., n_tokens, num_heads, d_head)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return what each head of each token attends to, where rotated queries meet rotated keys.

    queries    (..., n_tokens, num_heads, d_head)
    keys       (..., n_tokens, num_heads, d_head)
    values     (..., n_tokens, num_heads, d_value)
    positions  (n_tokens,)
    returns    (..., n_tokens, num_heads, d_value)
    """
    rotated = rotate(queries, positions)  # (..., n_tokens, num_heads, d_head)
    products = torch.einsum("...qhd,...khd->...hqk", rotated, rotate(keys, positions))  # not scaled
    scores = products / queries.shape[-1] ** 0.5  # (..., num_heads, n_tokens, n_tokens)
    weights = torch.softmax(scores, dim=-1)  # (..., num_heads, n_tokens, n_tokens)
    output = torch.einsum("...hqk,...khv->...qhv", weights, values)  # of each head
    return output  # (..., n_tokens, num_heads, d_value)
