# mistake: resampled_from_target
# After a refusal the last token is drawn from target[i] itself instead of the residual.
import torch
from torch import Tensor


def distribution(logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None) -> Tensor:
    if temperature < 0:
        raise ValueError("temperature has to be 0 or more")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k has to be 1 or more")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p has to be in (0, 1]")
    scores = logits.double()
    if temperature == 0:
        first = scores.argmax(dim=-1, keepdim=True)
        return torch.zeros_like(logits).scatter_(-1, first, 1.0)
    scores = (scores - scores.amax(dim=-1, keepdim=True)) / temperature
    if top_k is not None:
        top_k = min(top_k, scores.size(-1))
        indices_to_remove = scores < torch.topk(scores, top_k)[0][..., -1, None]
        scores = scores.masked_fill(indices_to_remove, -float("Inf"))
    probs = scores.softmax(dim=-1)
    if top_p is not None and top_p < 1:
        sorted_probs, _ = torch.sort(probs, descending=True)
        cumulative_probs = sorted_probs.cumsum(dim=-1)
        sorted_indices_to_remove = cumulative_probs >= top_p
        # Shift the mask to the right to keep the first token with which the mass is reached.
        sorted_indices_to_remove[..., 1:] = sorted_indices_to_remove[..., :-1].clone()
        sorted_indices_to_remove[..., 0] = False
        smallest = sorted_probs.masked_fill(sorted_indices_to_remove, 2.0).amin(dim=-1, keepdim=True)
        probs = probs.masked_fill(probs < smallest, 0.0)
    return (probs / probs.sum(dim=-1, keepdim=True)).to(logits.dtype)


def draw(probabilities: Tensor, u: float) -> int:
    return int((probabilities.cumsum(dim=0) <= u).sum())


def speculate(draft_tokens: Tensor, draft: Tensor, target: Tensor, u: Tensor, v: float) -> list[int]:
    tokens = []
    for i, token in enumerate(draft_tokens.tolist()):
        q, p = draft[i, token], target[i, token]
        if u[i] * q < p:
            tokens.append(token)
            continue
        return tokens + [draw(target[i], v)]
    return tokens + [draw(target[len(tokens)], v)]
