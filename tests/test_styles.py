"""Right solutions in other styles give what the references give."""

from __future__ import annotations

import pytest
from comparing import assert_rounds_to, assert_same
from corpus.programs import STYLES, styled
from reference_cases import CASES, SEEDS, References, loaded, sizes

from grader.testing import Rng


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("style", ["reference", *STYLES])
def test_a_lookup_finds_what_the_dictionary_holds(
    style: str, seed: int, references: References
) -> None:
    name = "dictionary_lookup"
    module = references[name] if style == "reference" else loaded(styled(style), name)
    rng = Rng(seed)
    n_keys, d_value = sizes(rng, 2)
    keys = (rng.permutation(40)[:n_keys] - 20).tolist()
    entries = dict(zip(keys, rng.randn(n_keys, d_value).tolist()))
    for key, value in entries.items():
        assert_rounds_to(module.lookup(entries, key), value, f"the value under {key}")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("style", STYLES)
def test_another_style_gives_what_the_reference_gives(
    style: str, name: str, seed: int, references: References
) -> None:
    case = CASES[name](Rng(seed), references[name])
    modules = loaded(styled(style), name), references[name]
    functions = [case.function(module) for module in modules]
    assert_same(*functions, case.leaves, **case.tolerance)
