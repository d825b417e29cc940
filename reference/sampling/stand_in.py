"""Stand-in for sampling: torch's categorical distribution, and a search among the sums."""

import torch
from torch import Tensor
from torch.distributions import Categorical


def distribution(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Return the probabilities of the next token, (..., vocab), in the dtype of logits."""
    k_is_wrong = top_k is not None and top_k < 1
    if temperature < 0 or k_is_wrong or (top_p is not None and not 0 < top_p <= 1):
        raise ValueError(f"{temperature=}, {top_k=}, {top_p=}")
    vocab = logits.shape[-1]
    if temperature == 0:
        best = torch.arange(vocab, device=logits.device) == logits.argmax(-1, keepdim=True)
        return best.to(logits.dtype)  # (..., vocab)
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature
    ordered = scores.sort(dim=-1, descending=True).values  # (..., vocab)
    least = ordered[..., min(top_k or vocab, vocab) - 1, None]  # (..., 1)
    scores = torch.where(scores >= least, scores, -torch.inf)  # (..., vocab)
    weights = Categorical(logits=scores, validate_args=False).probs  # (..., vocab)
    if top_p is not None:
        ordered = weights.sort(dim=-1, descending=True).values  # (..., vocab)
        before = ordered.cumsum(dim=-1) - ordered  # (..., vocab)
        n_kept = (before < top_p).sum(dim=-1, keepdim=True)  # (..., 1)
        kept = weights >= ordered.gather(-1, n_kept - 1)  # (..., vocab)
        weights = Categorical(weights * kept, validate_args=False).probs  # (..., vocab)
    return weights.to(logits.dtype)  # (..., vocab)


def draw(probabilities: Tensor, u: float) -> int:
    """Return the number of cumulative sums of probabilities, (vocab,), that are at most u."""
    return int(torch.searchsorted(probabilities.cumsum(dim=-1), u, right=True))


def speculate(
    draft_tokens: Tensor, draft: Tensor, target: Tensor, u: Tensor, v: float
) -> list[int]:
    """Return the draft tokens that are accepted, and one token more."""
    tokens = draft_tokens.tolist()
    for place, token in enumerate(tokens):
        if u[place] * draft[place, token] >= target[place, token]:
            rest = torch.relu(target[place] - draft[place])  # (vocab,)
            return [*tokens[:place], draw(rest / rest.sum(), v)]
    return [*tokens, draw(target[len(tokens)], v)]
