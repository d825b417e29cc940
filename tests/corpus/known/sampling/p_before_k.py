# mistake: p_before_k
import torch
import torch.nn.functional as F


def keep_top_k(scores, k):
    if k >= scores.size(-1):
        return scores
    threshold = torch.kthvalue(scores, scores.size(-1) - k + 1, dim=-1, keepdim=True).values
    return scores.masked_fill(scores < threshold, float("-inf"))


def keep_top_p(probabilities, p):
    ordered, order = torch.sort(probabilities, dim=-1, descending=True, stable=True)
    before = F.pad(ordered.cumsum(-1)[..., :-1], (1, 0))
    count = (before < p).sum(-1, keepdim=True)
    smallest = ordered.gather(-1, count - 1)
    remove_sorted = ordered < smallest
    remove = torch.zeros_like(remove_sorted).scatter(-1, order, remove_sorted)
    kept = probabilities.masked_fill(remove, 0.0)
    return kept / kept.sum(-1, keepdim=True)


def distribution(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature < 0:
        raise ValueError(f"{temperature=}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"{top_k=}")
    if top_p is not None and not 0.0 < top_p <= 1.0:
        raise ValueError(f"{top_p=}")
    scores = logits.double()
    if temperature == 0:
        return F.one_hot(scores.argmax(-1), scores.size(-1)).to(logits)
    scores = scores / temperature
    probabilities = F.softmax(scores, dim=-1)
    if top_p is not None:
        probabilities = keep_top_p(probabilities, top_p)
    if top_k is not None:
        probabilities = keep_top_k(probabilities.log(), top_k).softmax(-1)
    return probabilities.to(logits.dtype)


def draw(probabilities, u):
    edges = probabilities.cumsum(-1)
    where = torch.as_tensor(u, dtype=edges.dtype, device=edges.device)
    return int(torch.searchsorted(edges, where, right=True))


def speculate(draft_tokens, draft, target, u, v):
    k = draft_tokens.numel()
    index = draft_tokens.long().unsqueeze(-1)
    p = target[:k].gather(-1, index).squeeze(-1)
    q = draft.gather(-1, index).squeeze(-1)
    accepted = (u * q < p).int().cumprod(0)
    n = int(accepted.sum())
    padded = F.pad(draft, (0, 0, 0, 1))  # q is zero in the last row, the residual there is p
    rest = (target[n] - padded[n]).clamp_min(0.0)
    return draft_tokens[:n].tolist() + [draw(rest / rest.sum(), v)]
