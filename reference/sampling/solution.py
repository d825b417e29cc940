"""Reference solution: sampling from a model, and speculative decoding."""

import torch
from torch import Tensor


def distribution(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Return the probabilities of the next token, (..., vocab), in the dtype of logits.

    Raises ValueError for a temperature below 0, a top_k below 1, and a top_p outside (0, 1].
    """
    # --- solution
    if temperature < 0:
        raise ValueError(f"the temperature is {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k is {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}")
    if temperature == 0:
        best = logits.argmax(dim=-1, keepdim=True)  # (..., 1)
        return torch.zeros_like(logits).scatter(-1, best, 1.0)  # (..., vocab)
    precise = torch.promote_types(logits.dtype, torch.float32)  # of the softmax
    scores = logits.to(precise) / temperature  # (..., vocab)
    if top_k is not None:
        k = min(top_k, scores.shape[-1])
        least = scores.topk(k, dim=-1).values[..., -1:]  # (..., 1)
        scores = scores.masked_fill(scores < least, -torch.inf)  # (..., vocab)
    weights = torch.softmax(scores, dim=-1)  # (..., vocab)
    if top_p is not None:
        ordered = weights.sort(dim=-1, descending=True).values  # (..., vocab)
        before = ordered.cumsum(dim=-1) - ordered  # (..., vocab)
        late = before >= top_p  # (..., vocab)
        least = ordered.masked_fill(late, torch.inf).amin(dim=-1, keepdim=True)  # (..., 1)
        weights = weights.masked_fill(weights < least, 0.0)  # (..., vocab)
        weights = weights / weights.sum(dim=-1, keepdim=True)  # (..., vocab)
    return weights.to(logits.dtype)  # (..., vocab)
    # --- end


def draw(probabilities: Tensor, u: float) -> int:
    """Return the number of cumulative sums of probabilities, (vocab,), that are at most u."""
    # --- solution
    sums = probabilities.cumsum(dim=-1)  # (vocab,)
    return int((sums <= u).sum())
    # --- end


def speculate(
    draft_tokens: Tensor, draft: Tensor, target: Tensor, u: Tensor, v: float
) -> list[int]:
    """Return the draft tokens that are accepted, and one token more.

    draft_tokens and u are (k,), draft is (k, vocab), and target (k + 1, vocab).
    """
    # --- solution
    accepted = []
    for place, token in enumerate(draft_tokens.tolist()):
        p, q = target[place], draft[place]  # (vocab,) each
        if not u[place] * q[token] < p[token]:
            residual = (p - q).clamp(min=0)  # (vocab,)
            return [*accepted, draw(residual / residual.sum(), v)]
        accepted.append(token)
    return [*accepted, draw(target[-1], v)]
    # --- end
