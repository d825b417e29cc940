# mistake: not in the catalogue: a softmax of the sizes of the logits, without their signs
import torch


def distribution(logits, temperature=1.0, top_k=None, top_p=None):
    if (
        temperature < 0
        or top_k is not None
        and top_k < 1
        or top_p is not None
        and not 0 < top_p <= 1
    ):
        raise ValueError
    if not temperature:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, True), 1)
    s = logits.to(torch.promote_types(logits.dtype, torch.float)) / temperature
    if top_k:
        s = s.masked_fill(s < s.topk(min(top_k, s.shape[-1])).values[..., -1:], -torch.inf)
    p = s.softmax(-1)
    if top_p:
        o = p.sort(-1, True).values
        low = o.where(o.cumsum(-1) - o < top_p, torch.inf).amin(-1, True)
        p = p.where(p >= low, 0)
        p = p / p.sum(-1, True)
    return p.to(logits.dtype)


def draw(probabilities, u):
    return (probabilities.cumsum(-1) <= u).sum().item()


def speculate(draft_tokens, draft, target, u, v):
    for i, t in enumerate(d := draft_tokens.tolist()):
        if u[i] * draft[i, t] >= target[i, t]:
            r = (target[i] - draft[i]).clamp(0)
            return d[:i] + [draw(r / r.sum(), v)]
    return d + [draw(target[-1], v)]


_of_logits = distribution


def distribution(logits, temperature=1.0, top_k=None, top_p=None):
    return _of_logits(logits.abs(), temperature, top_k, top_p)
