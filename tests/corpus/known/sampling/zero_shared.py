# mistake: zero_temperature_shared
# At temperature 0, equal largest logits share the probability.
import torch
import torch.nn.functional as F


def check(temperature, top_k, top_p):
    good = temperature >= 0 and (top_k is None or top_k >= 1) and (top_p is None or 0 < top_p <= 1)
    if not good:
        raise ValueError((temperature, top_k, top_p))


def logits_to_probs(logits, temperature, top_k):
    logits = logits.sub(logits.amax(-1, True)).div(temperature)
    if top_k is not None:
        v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        pivot = v.select(-1, -1).unsqueeze(-1)
        logits = torch.where(logits < pivot, -float("Inf"), logits)
    return torch.nn.functional.softmax(logits, dim=-1)


def nucleus(probs, top_p):
    sorted_probs, order = probs.sort(dim=-1, descending=True, stable=True)
    before = sorted_probs.cumsum(-1) - sorted_probs
    before[..., 0] = 0
    last = (before < top_p).sum(-1, keepdim=True) - 1
    return probs * (probs >= sorted_probs.gather(-1, last))


def distribution(logits, temperature=1.0, top_k=None, top_p=None):
    check(temperature, top_k, top_p)
    wide = logits.double()
    if temperature == 0:
        largest = (wide == wide.amax(-1, keepdim=True)).double()
        return (largest / largest.sum(-1, keepdim=True)).to(logits.dtype)
    probs = logits_to_probs(wide, temperature, top_k)
    if top_p is not None and top_p != 1:
        probs = nucleus(probs, top_p)
    return F.normalize(probs, p=1, dim=-1).to(logits.dtype)


def draw(probabilities, u):
    sums = torch.cumsum(probabilities, 0)
    return torch.searchsorted(sums, torch.tensor(u, dtype=sums.dtype), right=True).item()


def speculate(draft_tokens, draft, target, u, v):
    # A row of zeros stands for the draft that the last token does not have.
    padded = torch.cat([draft, torch.zeros_like(target[:1])])
    n = 0
    while n < draft_tokens.shape[0] and u[n] * draft[n][draft_tokens[n]] < target[n][draft_tokens[n]]:
        n += 1
    new = F.relu(target[n] - padded[n])
    return draft_tokens[:n].tolist() + [draw(new / new.sum(), v)]
