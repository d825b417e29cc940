# right: a small class of partial results that are merged, with one class for both functions
import functools
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Part:
    """The largest score of each row, and sums of columns weighted by exp(score - largest)."""

    largest: Tensor  # (..., 1)
    sums: Tensor  # (..., n_columns)

    def seen_from(self, largest: Tensor) -> Tensor:
        nothing = torch.isneginf(self.largest)
        exponent = torch.where(nothing, 0.0, self.largest) - torch.where(nothing, 0.0, largest)
        return torch.where(nothing, 0.0, self.sums * exponent.exp())

    def merged(self, other: "Part") -> "Part":
        largest = torch.maximum(self.largest, other.largest)
        return Part(largest, self.seen_from(largest) + other.seen_from(largest))


def part_of(scores: Tensor, columns: Tensor | None) -> Part:
    largest = scores.amax(-1, keepdim=True).detach()
    powers = (scores - largest.masked_fill(largest.isneginf(), 0)).exp()
    total = powers.sum(-1, keepdim=True)
    if columns is None:
        return Part(largest, total)
    return Part(largest, torch.cat((powers @ columns, total), -1))


def online_softmax(chunks, state=None):
    parts = (part_of(chunk, None) for chunk in chunks)
    if state is None:
        result = functools.reduce(Part.merged, parts)
    else:
        first = Part(state[0].unsqueeze(-1).detach(), state[1].unsqueeze(-1))
        result = functools.reduce(Part.merged, parts, first)
    return result.largest.squeeze(-1), result.sums.squeeze(-1)


def tiled_attention(Q, K, V, tile, causal=False):
    if tile < 1:
        raise ValueError("a tile needs a key")
    rows = torch.arange(Q.shape[-2], device=Q.device).unsqueeze(1)

    def part_from(start: int) -> Part:
        keys = K[..., start : start + tile, :]
        scores = (Q / Q.shape[-1] ** 0.5) @ keys.mT
        if causal:
            place = torch.arange(start, start + keys.shape[-2], device=Q.device)
            scores = torch.where(place <= rows, scores, float("-inf"))
        return part_of(scores, V[..., start : start + tile, :])

    sums = functools.reduce(Part.merged, map(part_from, range(0, K.shape[-2], tile))).sums
    return sums[..., :-1] / sums[..., -1:]
