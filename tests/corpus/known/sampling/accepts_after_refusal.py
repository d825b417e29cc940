# mistake: goes_on_after_a_refusal
# All draft tokens are tested alone, and those after a refusal are kept, too.
import bisect

import torch
from torch import Tensor


def distribution(logits, temperature=1.0, top_k=None, top_p=None):
    if not temperature >= 0:
        raise ValueError(f"temperature {temperature}")
    if top_k is not None and not top_k >= 1:
        raise ValueError(f"top_k {top_k}")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError(f"top_p {top_p}")
    z = logits.to(torch.promote_types(logits.dtype, torch.float32)).contiguous()
    if temperature == 0:
        return torch.nn.functional.one_hot(z.argmax(-1), z.size(-1)).to(logits.dtype)
    z = (z - z.max(-1, keepdim=True).values) / temperature
    if top_k is not None and top_k < z.size(-1):
        kth = z.sort(-1, descending=True).values[..., top_k - 1 : top_k]
        z = torch.where(z >= kth, z, -torch.inf)
    p = torch.softmax(z, -1)
    if top_p not in (None, 1):
        ascending = p.sort(-1).values
        mass = torch.nn.functional.pad(ascending.double().flip(-1).cumsum(-1).flip(-1), (0, 1))
        first_above = torch.searchsorted(ascending, p, right=True)
        above = mass.gather(-1, first_above)
        p = torch.where(above < top_p, p, 0.0)
        p = p / p.sum(-1, keepdim=True)
    return p.to(logits.dtype)


def draw(probabilities, u):
    return bisect.bisect_right(probabilities.cumsum(-1).tolist(), u)


def speculate(draft_tokens, draft, target, u, v):
    k = len(draft_tokens)
    column = draft_tokens.unsqueeze(1)
    q = draft.gather(1, column).squeeze(1)
    p = target[:k].gather(1, column).squeeze(1)
    passed = u * q < p
    accepted = int(passed.int().cumprod(0).sum())
    if accepted < k:
        rest = torch.relu(target[accepted] - draft[accepted])
        last = draw(rest / rest.sum(), v)
    else:
        last = draw(target[k], v)
    return [*draft_tokens[passed].tolist(), last]
