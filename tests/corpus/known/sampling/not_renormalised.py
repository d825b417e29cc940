# mistake: not_renormalised
import itertools
import math

import torch


def distribution(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature < 0 or (top_k is not None and top_k < 1) or (top_p is not None and not (0 < top_p <= 1)):
        raise ValueError("out of range")
    if logits.dim() > 1:
        return torch.stack([distribution(row, temperature, top_k, top_p) for row in logits])
    z = logits.tolist()
    if temperature == 0:
        best = z.index(max(z))
        p = [float(i == best) for i in range(len(z))]
        return torch.tensor(p, dtype=logits.dtype)
    if top_k is not None:
        bar = sorted(z, reverse=True)[:top_k][-1]
        z = [score if score >= bar else -math.inf for score in z]
    top = max(z)
    e = [math.exp((score - top) / temperature) for score in z]
    p = [x / sum(e) for x in e]
    if top_p is not None:
        tail = sorted(p, reverse=True)
        before = [0.0, *itertools.accumulate(tail)]
        bar = min(x for x, mass in zip(tail, before) if mass < top_p)
        p = [x if x >= bar else 0.0 for x in p]
    return torch.tensor(p, dtype=logits.dtype)


def draw(probabilities, u):
    return sum(1 for mass in itertools.accumulate(probabilities.tolist()) if mass <= u)


def speculate(draft_tokens, draft, target, u, v):
    tokens = []
    for token, q, p, coin in zip(draft_tokens.tolist(), draft, target, u.tolist()):
        if not coin * q[token] < p[token]:
            rest = [max(a - b, 0.0) for a, b in zip(p.tolist(), q.tolist())]
            tokens.append(draw(torch.tensor(rest, dtype=target.dtype) / sum(rest), v))
            break
        tokens.append(token)
    else:
        tokens.append(draw(target[-1], v))
    return tokens
