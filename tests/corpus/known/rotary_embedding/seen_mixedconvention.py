# mistake: angles_of_the_other_pairs
# seen: how-to-train-your-gpt issue 6: the angles are laid out for neighbouring columns while the pairs are one column of each half (interleaved=False).
import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    n_tokens, d = x.shape[-3], x.shape[-1]
    if d % 2:
        raise ValueError(f"d_head = {d} is odd")
    if positions.shape != (n_tokens,):
        raise ValueError(f"{n_tokens} tokens need as many positions")
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    inv_freq = base ** (-torch.arange(0, d, 2, dtype=dtype, device=x.device) / d)
    freqs = torch.outer(positions.to(x.device, dtype), inv_freq)
    emb = freqs.repeat_interleave(2, dim=-1)
    if interleaved:
        turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    else:
        turned = torch.cat((-x[..., d // 2 :], x[..., : d // 2]), dim=-1)
    emb = emb[:, None, :]
    return (x * emb.cos() + turned * emb.sin()).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = rotate(queries, positions), rotate(keys, positions)
    scores = torch.einsum("...qhd,...khd->...hqk", q, k) / q.shape[-1] ** 0.5
    return torch.einsum("...hqk,...khe->...qhe", scores.softmax(-1), values)
