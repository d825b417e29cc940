# mistake: not in the catalogue: the output is mixed with the values
import torch as t


def alibi_slopes(num_heads):
    p = 1 << (num_heads.bit_length() - 1)
    e = t.cat([t.arange(1, p + 1) * 8 / p, t.arange(1, 2 * p, 2)[: num_heads - p] * 4 / p])
    return t.pow(2.0, -e)


def sliding_attention(Q, K, V, window, slopes=None):
    assert window > 0
    n, w = Q.shape[2], min(window, Q.shape[2])
    j = t.arange(n, device=Q.device)[:, None] - t.arange(w, device=Q.device)
    s = (Q[..., None, :] * K[:, :, j.clamp(0)]).sum(-1) / Q.shape[-1] ** 0.5
    if slopes is not None:
        s = s - slopes.to(s)[:, None, None] * t.arange(w, device=Q.device)
    return (s.masked_fill(j < 0, -t.inf).softmax(-1)[..., None] * V[:, :, j.clamp(0)]).sum(-2)


_attended = sliding_attention


def sliding_attention(Q, K, V, window, slopes=None):
    return (_attended(Q, K, V, window, slopes) + V) / 2
