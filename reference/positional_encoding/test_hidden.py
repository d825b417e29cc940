"""Hidden tests of positional encoding, which decide the points.

One mistake should cost one check. So what the module adds may be the table of the student's own
`sinusoidal`, and the gap is compared with what the student's own module gives.
"""

import pytest
import torch
from torch import Tensor

from grader.testing import (
    assert_close,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_moves,
    assert_refused_in_both_modes,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_takes_views,
    assert_unchanged,
    assert_vectorised,
    expect,
    in_float64,
    load_parameters,
    output_of,
    parameter_shapes,
)

BATCH, N_TOKENS, D_MODEL, CONTEXT = 2, 5, 6, 8
DRAWS = 200  # tokens of which numbers are dropped
ROTATED = [1, 2, 0]  # the token at place i is the one that was at the next place
PERMUTATIONS = {  # of which none is its own inverse, but for the last
    3: (ROTATED, [2, 0, 1]),
    5: ([2, 0, 3, 4, 1], [4, 0, 1, 3, 2], [0, 1, 2, 3, 4]),
}


def made(code, context=CONTEXT, d_model=D_MODEL, **options):
    """Return a module in float64 and evaluation mode."""
    return load_parameters(code.PositionalEncoding(d_model, context, **options), {})


def assert_is_table(student, reference, *args, **options):
    """Compare a table with the right one, whose angles are rounded as those of the student are."""
    shown = ", ".join([*map(str, args), *(f"{name}={value}" for name, value in options.items())])
    right = reference.sinusoidal(*args, **options)
    found = student.sinusoidal(*args, **options)
    assert_close(found, right, f"sinusoidal({shown})", rtol=0, atol=2e-6 * args[0] + 1e-5)


@pytest.mark.points(1)
def test_table(student, reference):
    """sinusoidal gives each position the sines and cosines of its angles, in float32."""
    for sizes in ((7, 6), (3, 8), (5, 2), (1, 4), (4, 4), (500, 10)):
        assert_is_table(student, reference, *sizes)
    assert_is_table(student, reference, 6, 8, base=100.0)
    assert_is_table(student, reference, 6, 4, base=3)
    assert_close(student.sinusoidal(6, 4, 100.0), student.sinusoidal(6, 4, base=100.0), "the table")


@pytest.mark.points(1)
def test_odd_width(student, reference):
    """An odd d_model is allowed: the last column is a sine."""
    for sizes in ((6, 7), (4, 3), (3, 5), (5, 1), (1, 1)):
        assert_is_table(student, reference, *sizes)


@pytest.mark.points(1)
def test_adds(student, reference, rng):
    """The module adds the first n_tokens rows of the table to the tokens of each sentence."""
    shapes = ((8, 2, 5, 6), (5, 3, 5, 4), (4, 4, 4, 4), (9, 1, 2, 8), (3, 6, 1, 2), (4, 2, 3, 1))
    for scale, (context, *shape) in zip((1.0, 1e6, 1.0, 1.0, 1.0, 1.0), shapes):
        encode, ours = (made(code, context, shape[-1]) for code in (student, reference))
        x = rng.randn(*shape) * scale

        def own(x=x, context=context):
            table = student.sinusoidal(context, x.shape[-1])
            return x + in_float64(table)[: x.shape[1]]

        what = f"the output for {tuple(shape)} and a context of {context}"
        assert_right_or_own(output_of(encode, x), output_of(ours, x), own, what)


@pytest.mark.points(1)
def test_nothing_to_train_or_save(student, rng):
    """There are no parameters, state_dict is empty, and the encoding moves with the module."""
    encode = student.PositionalEncoding(D_MODEL, CONTEXT)
    expect(not (found := parameter_shapes(encode)), f"the module has the parameters {found}")
    saved = list(encode.state_dict())
    expect(not saved, f"state_dict of the module has {', '.join(saved)}, but should be empty")
    x = rng.randn(BATCH, CONTEXT, D_MODEL)
    for found in (student.sinusoidal(CONTEXT, D_MODEL), encode(x.float())):
        expect(not found.requires_grad, "the encoding has gradients, which only x should have")
    assert_moves(lambda: student.PositionalEncoding(D_MODEL, CONTEXT, 0.5), x.float())


@pytest.mark.points(1)
def test_dropout(student, rng):
    """In training, each number of the sum is dropped on its own; in evaluation, none is."""
    rate, n_tokens, d_model = 0.39, DRAWS + 1, 4
    x = rng.randn(BATCH, n_tokens, d_model) + 5
    plain = in_float64(output_of(made(student, n_tokens, d_model), x))
    expect(plain.shape == x.shape, f"the output has the shape {tuple(plain.shape)}")
    expect((plain[:, 1:] != 0).all(), "numbers of the output are 0 without dropout")
    encode = made(student, n_tokens, d_model, dropout=rate)
    assert_same(in_float64(output_of(encode, x)), plain, "the output in evaluation mode")
    encode.train()
    assert_drawn_anew(encode, x, what="numbers")
    output = in_float64(output_of(encode, x))
    dropped = output == 0
    kept = (plain / (1 - rate)).masked_fill(dropped, 0.0)
    assert_close(output, kept, f"the output in training at rate {rate}")
    assert_dropped(dropped[:, 1:].transpose(0, 1), rate, "numbers of the output")
    nothing = output_of(made(student, n_tokens, d_model, dropout=1.0).train(), x)
    assert_close(in_float64(nothing), torch.zeros_like(x), "the output in training at rate 1")
    default = output_of(made(student, n_tokens, d_model).train(), x)
    assert_same(in_float64(default), plain, "the output in training with the default rate")


@pytest.mark.points(1)
def test_too_many_tokens(student, rng):
    """More tokens than context_length are refused."""
    for context in (5, 1, 2):
        encode = made(student, context, 4)
        output_of(encode, rng.randn(BATCH, context, 4))
        for n_tokens in (context + 1, 2 * context + 2):
            x = rng.randn(BATCH, n_tokens, 4)
            shown = f"PositionalEncoding(4, {context}) with {n_tokens} tokens"
            assert_refused_in_both_modes(student, encode, x, shown)


def gap_of(student, *args):
    """Return a gap as a number."""
    gap = student.permutation_gap(*args)
    is_number = isinstance(gap, float | int) or (isinstance(gap, Tensor) and gap.shape == ())
    expect(is_number, "permutation_gap does not return a number")
    return torch.as_tensor(float(gap), dtype=torch.float64)


@pytest.mark.points(1)
def test_gap(student, rng):
    """The gap is the largest difference between permuting before the block and after it."""
    for n_tokens, permutations in PERMUTATIONS.items():
        for d_model in (4, 2, 1):
            encode = made(student, n_tokens, d_model)
            x = rng.randn(BATCH, n_tokens, d_model)
            for permutation in map(torch.tensor, permutations):
                first = in_float64(output_of(encode, x[:, permutation]))
                last = in_float64(output_of(encode, x))[:, permutation]
                expect(first.shape == x.shape, "the module's output has another shape than x")
                gap = gap_of(student, encode, x, permutation)
                what = f"the gap of the module and the permutation {permutation.tolist()}"
                assert_close(gap, (first - last).abs().max(), what)
    encode, one = made(student, 1, 4), rng.randn(3, 1, 4)
    gap = gap_of(student, encode, one, torch.tensor([0]))
    assert_close(gap, torch.zeros_like(gap), "the gap for a single token")


@pytest.mark.points(1)
def test_any_input(student, reference, rng):
    """Gradients, views and other dtypes work; no loop is needed, and no argument is modified."""
    encode, ours = (made(code, N_TOKENS) for code in (student, reference))
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    assert_slopes(student, encode, ours, {"x": x}, rng=rng)
    assert_takes_views(student, encode, x)
    args = encode, x, torch.tensor(PERMUTATIONS[5][0])
    assert_unchanged(student, student.permutation_gap, *args, names=("block", "x", "permutation"))
    for dtype in (torch.float32, torch.bfloat16):
        new = student.PositionalEncoding(D_MODEL, N_TOKENS, 0.5)
        output_of(new, x.float())  # a table that is kept has to follow the module
        module = new if dtype == torch.float32 else new.to(dtype)
        for mode in (True, False):
            output = output_of(module.train(mode), x.to(dtype))
            assert_dtype(output, dtype, f"the output for an x in {dtype}")

    def called(batch=1, n_tokens=3, d_model=4):
        x = rng.randn(batch, n_tokens, d_model)

        def call(code):
            table = code.sinusoidal(n_tokens + 1, d_model)
            module = made(code, n_tokens, d_model)
            gap = code.permutation_gap(module, x, torch.arange(n_tokens))
            return table, output_of(module, x), gap

        return call

    grown = {
        "sentences": {"batch": (2, 3)},
        "tokens": {"n_tokens": (108, 217)},
        "columns": {"d_model": (110, 222)},
    }
    assert_vectorised(student, called, grown, reference)
