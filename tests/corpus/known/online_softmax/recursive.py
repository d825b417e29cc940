# mistake: outputs_of_all_tiles
import torch


def merge(a, b):
    (m1, l1), (m2, l2) = a, b
    m = torch.maximum(m1, m2)
    zero = torch.zeros_like(m)
    z = torch.where(torch.isneginf(m), zero, m)
    return m, l1 * torch.exp(m1 - z) + l2 * torch.exp(m2 - z)


def alone(chunk):
    m = chunk.max(-1)[0]
    z = torch.where(torch.isneginf(m), torch.zeros_like(m), m)
    return m, torch.exp(chunk - z.unsqueeze(-1)).sum(-1)


def online_softmax(chunks, state=None):
    head, *tail = chunks
    state = alone(head) if state is None else merge(state, alone(head))
    return online_softmax(tail, state) if tail else state


def tiled_attention(Q, K, V, tile, causal=False, _start=0, _state=None):
    if tile < 1:
        raise ValueError("tile must be at least 1")
    k, v = K[..., _start : _start + tile, :], V[..., _start : _start + tile, :]
    s = Q @ k.mT / Q.shape[-1] ** 0.5
    if causal:
        s = s + torch.zeros_like(s[..., :, :]).masked_fill(
            (torch.arange(k.shape[-2]) + _start) > torch.arange(Q.shape[-2])[:, None], -torch.inf
        )
    m = s.amax(-1, keepdim=True)
    old = torch.full_like(m, -torch.inf) if _state is None else _state[0]
    m = torch.maximum(m, old)
    w = (s - m).exp()
    total, output = w.sum(-1, keepdim=True), w @ v
    if _state is not None:
        f = (old - m).exp()
        total, output = total + f * _state[1], output + f * _state[2]
    if _start + tile >= K.shape[-2]:
        return output / total
    return tiled_attention(Q, K, V, tile, causal, _start + tile, (m, total, output))
