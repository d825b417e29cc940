# mistake: goes_on_after_a_refusal
import torch


def distribution(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature < 0 or (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
        raise ValueError("temperature, top_k or top_p out of range")
    n = logits.shape[-1]
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), n).to(logits.dtype)
    scores = logits if logits.dtype == torch.float64 else logits.float()
    scores = scores / temperature
    if top_k is not None:
        # a token stays if fewer than k tokens are above it
        above = torch.einsum("...ij->...i", (scores.unsqueeze(-2) > scores.unsqueeze(-1)).to(scores.dtype))
        scores = scores.masked_fill(above >= top_k, -torch.inf)
    p = torch.softmax(scores, -1)
    if top_p is not None:
        greater = (p.unsqueeze(-2) > p.unsqueeze(-1)).to(p.dtype)  # [i, j]: j is above i
        equal = (p.unsqueeze(-2) == p.unsqueeze(-1)).to(p.dtype)
        # the first of a group of ties sees only what is above the whole group
        mass = torch.einsum("...ij,...j->...i", greater, p)
        p = p * (mass < top_p)
        p = p / torch.einsum("...i->...", p).unsqueeze(-1)
    return p.to(logits.dtype)


def draw(probabilities, u):
    lower = torch.ones(len(probabilities), len(probabilities), dtype=probabilities.dtype).tril()
    sums = torch.einsum("ij,j->i", lower, probabilities)
    return int((sums <= u).sum())


def speculate(draft_tokens, draft, target, u, v):
    k = len(draft_tokens)
    rows = torch.nn.functional.one_hot(draft_tokens, draft.shape[-1]).to(draft.dtype)
    q = torch.einsum("kv,kv->k", rows, draft)
    p = torch.einsum("kv,kv->k", rows, target[:k])
    refused = (u * q >= p).nonzero().flatten().tolist()
    tokens = draft_tokens.tolist()
    if not refused:
        return [*tokens, draw(target[k], v)]
    first = refused[0]
    kept = [t for i, t in enumerate(tokens) if i not in refused]
    rest = (target[first] - draft[first]).relu()
    return [*kept, draw(rest / rest.sum(), v)]
