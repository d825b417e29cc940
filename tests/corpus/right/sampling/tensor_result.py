# right: tensor result style
import torch
from torch import Tensor


def distribution(logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None) -> Tensor:
    """The distribution that a sampler draws from."""
    if temperature < 0:
        raise ValueError("a temperature is not negative")
    if top_k is not None and top_k < 1:
        raise ValueError("keep one token at least")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p is a share of the mass")
    if temperature == 0:
        best = logits == logits.amax(dim=-1, keepdim=True)
        first = best & (best.cumsum(dim=-1) == 1)
        return first.to(logits.dtype)
    work = logits.detach().clone().to(torch.float64 if logits.dtype == torch.float64 else torch.float32)
    work /= temperature
    ranked, _ = work.sort(dim=-1, descending=True)
    if top_k is not None:
        k = min(top_k, work.shape[-1])
        work[work < ranked[..., k - 1 : k]] = -float("inf")
    work = (work - work.amax(dim=-1, keepdim=True)).exp()
    work = work / work.sum(dim=-1, keepdim=True)
    if top_p is not None:
        ranked, _ = work.sort(dim=-1, descending=True)
        mass = ranked.cumsum(dim=-1)
        # the first place where the mass reaches top_p is the last that stays
        last = (mass < top_p).sum(dim=-1, keepdim=True).clamp(max=work.shape[-1] - 1)
        work[work < ranked.gather(-1, last)] = 0
        work = work / work.sum(dim=-1, keepdim=True)
    return work.to(logits.dtype)


def draw(probabilities: Tensor, u: float) -> int:
    return int(torch.count_nonzero(torch.cumsum(probabilities, dim=-1) <= u))


def speculate(draft_tokens: Tensor, draft: Tensor, target: Tensor, u: Tensor, v: float) -> Tensor:
    for i, token in enumerate(draft_tokens):
        if u[i] * draft[i, token] < target[i, token]:
            continue
        residual = torch.maximum(target[i] - draft[i], torch.zeros_like(target[i]))
        last = draw(residual / residual.sum(), v)
        return torch.cat([draft_tokens[:i], torch.tensor([last])])
    return torch.cat([draft_tokens, torch.tensor([draw(target[len(draft_tokens)], v)])])
