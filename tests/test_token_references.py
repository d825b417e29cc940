"""The references that make and choose tokens follow laws that were not made here."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference_cases import References

from grader.testing import Rng

LEARNED = 256
TEXTS = st.binary(max_size=60) | st.text("ab ", max_size=60).map(str.encode)


def replaced(text: str, merges: list[tuple[int, int]]) -> str:
    """A text of one character for each token, after `str.replace` for each merge in order."""
    for number, pair in enumerate(merges):
        text = text.replace("".join(map(chr, pair)), chr(LEARNED + number))
    return text


@given(data=TEXTS, other=TEXTS, num_merges=st.integers(0, 9))
def test_merges_are_replacements_in_a_text(
    data: bytes, other: bytes, num_merges: int, references: References
) -> None:
    module = references["byte_pair_encoding"]
    merges = module.train(data, num_merges)
    for number, pair in enumerate(merges):
        text = replaced(data.decode("latin-1"), merges[:number])
        counts = {
            (ord(one), ord(next_one)): sum(
                text.startswith(one + next_one, n) for n in range(len(text))
            )
            for one, next_one in itertools.pairwise(text)
        }
        most = max(counts.values())
        assert most > 1
        assert pair == min(each for each, count in counts.items() if count == most)
    for text in (data, other):
        tokens = module.encode(text, merges)
        assert tokens == list(map(ord, replaced(text.decode("latin-1"), merges)))
        assert module.decode(tokens, merges) == text


@given(data=TEXTS, texts=st.sets(st.binary(min_size=1, max_size=3), max_size=4))
def test_special_tokens_come_back(data: bytes, texts: set[bytes], references: References) -> None:
    module = references["byte_pair_encoding"]
    merges = module.train(data, 4)
    special = {text: 1000 + number for number, text in enumerate(sorted(texts))}
    tokens = module.encode(data, merges, special)
    assert module.decode(tokens, merges, special) == data
    if all(text not in data for text in texts):
        assert tokens == module.encode(data, merges)


@pytest.mark.parametrize("seed", range(3))
def test_a_speculated_token_has_the_law_of_the_target(seed: int, references: References) -> None:
    count, speculate = 40, references["sampling"].speculate
    rng = Rng(seed)
    draft, target = rng.randn(1, 4).softmax(dim=-1), rng.randn(2, 4).softmax(dim=-1)
    middles = (torch.arange(count).double() + 0.5) / count
    law = torch.zeros(4, dtype=torch.float64)
    for token, q in enumerate(draft[0].tolist()):
        for u in middles.split(1):
            for v in middles.tolist():
                first = speculate(torch.tensor([token]), draft, target, u, v)[0]
                law[first] += q / count**2
    assert (law - target[0]).abs().max() < 0.02


def test_what_is_accepted_and_what_is_drawn_instead_add_up_to_the_target() -> None:
    p, q = Rng(1).randn(2, 5).softmax(dim=-1)
    residual = (p - q).clamp(min=0)
    refused = 1 - torch.minimum(p, q).sum()
    assert torch.allclose(torch.minimum(p, q) + refused * residual / residual.sum(), p)
