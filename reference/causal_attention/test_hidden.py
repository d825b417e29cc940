"""Hidden tests of causal attention, which decide the points.

A check of anything but the formula compares the student's answers with each other, so that one
mistake costs one check.
"""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_moves,
    assert_refused_in_both_modes,
    assert_same,
    assert_slopes,
    assert_takes_views,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    manual_seed,
    output_of,
    parameter_shapes,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, CONTEXT, D_IN, D_OUT = 2, 5, 6, 7, 4
NAMES = "W_query", "W_key", "W_value"
DRAWS, RATE = 200, 0.39  # sentences of which the weights are dropped


def weights_of(rng, *, d_in=D_IN, d_out=D_OUT):
    """Return random weights of the three layers by name."""
    return {f"{name}.weight": rng.randn(d_out, d_in) * 0.5 for name in NAMES}


def same_weights(rng, *, d_in=D_IN, d_out=D_OUT):
    """Return the same random weights for all layers, so that a swapped layer does not matter."""
    return dict.fromkeys((f"{name}.weight" for name in NAMES), rng.randn(d_out, d_in) * 0.5)


def made(code, state, *, context=None, dropout=0.0, d_in=D_IN, d_out=D_OUT, **options):
    """Return a module in float64 and evaluation mode, with the parameters `state`.

    Biases that are not in `state` are 0: another check asks whether they should be there.
    Without `context`, it is one at which the code works.
    """
    context = context or working_context(code)
    module = code.CausalAttention(d_in, d_out, context, dropout, **options)
    biases = {f"{name}.bias": torch.zeros(d_out) for name in NAMES}
    return load_parameters(module, {**biases, **state})


@functools.lru_cache(maxsize=2)
def working_context(code):
    """Return a context length at which the code takes N_TOKENS tokens: N_TOKENS, or CONTEXT.

    Code that needs a full context, or refuses one, fails in the check of the sizes alone.
    """
    x = torch.ones(1, N_TOKENS, D_IN)
    try:
        output_of(code.CausalAttention(D_IN, D_OUT, N_TOKENS, 0.0), x)
    except Exception:  # the check itself reports what is wrong
        return CONTEXT
    return N_TOKENS


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    x = rng.randn(BATCH, N_TOKENS, D_IN, dtype=torch.float32)
    sizes = D_IN, D_OUT, CONTEXT, 0.0
    assert_written_by_hand(student, lambda: output_of(student.CausalAttention(*sizes), x))


@pytest.mark.points(3)
def test_causal_attention(student, reference, rng):
    """The output matches the formula."""
    cases = {(D_IN, D_OUT): (N_TOKENS, 1.0), (3, 8): (N_TOKENS, 1e-6), (5, 6): (2, 1e6)}
    for (d_in, d_out), (n_tokens, scale) in cases.items():
        options = {"context": CONTEXT, "d_in": d_in, "d_out": d_out}
        state = weights_of(rng, d_in=d_in, d_out=d_out)
        # Large queries or keys and values, but ordinary scores.
        for name, size in zip(NAMES, (1 / scale, scale, max(scale, 1))):
            state[f"{name}.weight"] = state[f"{name}.weight"] * size
        theirs, ours = (made(code, state, **options) for code in (student, reference))
        x = rng.randn(BATCH, n_tokens, d_in)
        assert_close(output_of(theirs, x), output_of(ours, x), atol=1e-5 * max(scale, 1))


@pytest.mark.points(2)
def test_gradients(student, reference, rng):
    """In both modes, gradients reach x and all parameters, and are the slopes of the output."""
    state = weights_of(rng)
    theirs, ours = (made(code, state, dropout=RATE) for code in (student, reference))
    assert_slopes(student, theirs, ours, {"x": rng.randn(BATCH, N_TOKENS, D_IN)}, rng=rng)


@pytest.mark.points(1)
def test_any_size(student, reference, rng):
    """A batch of any size, 1 to context_length tokens and one output feature work.

    Guards: a token of zeros, whose scores are 0.
    """
    state = same_weights(rng)
    module, longer = (made(student, state, context=context) for context in (CONTEXT, CONTEXT + 3))
    x = rng.randn(3, CONTEXT, D_IN)
    output, whole = in_float64(output_of(module, x)), (3, CONTEXT, D_OUT)
    assert_same(output, output_of(longer, x), "the output for a full context", shape=whole)
    alone = output_of(module, x[:1])
    assert_same(alone, output[:1], "the output for a batch of 1", shape=(1, CONTEXT, D_OUT))
    # A score of 0 is a score like any other.
    zeros = x.clone()
    zeros[:, 0] = 0.0
    finite = in_float64(output_of(module, zeros)).isfinite() | ~output.isfinite()
    expect(finite.all(), "the output for a text with a token of zeros is not finite")
    # Whatever the weights are, the mean of two equal values is that value.
    token = x[:, :1]
    twice = in_float64(output_of(module, token.repeat(1, 2, 1)))[:, :1]
    single = output_of(module, token)
    assert_same(single, twice, "the output for a single token", shape=(3, 1, D_OUT))
    alone = output_of(module, token[:1])
    assert_same(alone, twice[:1], "the output for one token alone", shape=(1, 1, D_OUT))
    growing = made(student, state, context=CONTEXT)
    output_of(growing, token)
    after = output_of(growing, x)  # which a mask made for the first call does not fit
    assert_same(after, output, "the output for a full context after a single token")
    state_of_one = same_weights(rng, d_out=1)
    narrow = in_float64(output_of(made(student, state_of_one, d_out=1, context=CONTEXT), x))
    found = tuple(narrow.shape)
    expect(found == (3, CONTEXT, 1), f"the output for a d_out of 1 has shape {found}")
    right = in_float64(output_of(made(reference, state, context=CONTEXT), x))
    if torch.allclose(output, right, rtol=1e-5, atol=1e-5):  # else other checks tell what is wrong
        right = output_of(made(reference, state_of_one, d_out=1, context=CONTEXT), x)
        assert_close(narrow, right, "the output for a d_out of 1")


@pytest.mark.points(1)
def test_future_is_invisible(student, reference, rng):
    """In both modes, later tokens change no earlier output, whatever the scores are."""
    # Keys are the negative queries, so a token's score with itself is far below 0.
    state = weights_of(rng)
    state["W_key.weight"] = -state["W_query.weight"]
    module = made(student, state)
    scales = torch.tensor([1.0, 1e2, 1e3, 1e6], dtype=torch.float64).view(-1, 1, 1)
    x = rng.randn(4, N_TOKENS, D_IN) * scales
    changed = x.clone()
    changed[:, 3:] += rng.randn(4, N_TOKENS - 3, D_IN) * scales * 1e6
    for training in (False, True):
        module.train(training)
        before, after = (in_float64(output_of_seeded(student, module, z)) for z in (x, changed))
        finite = before[:, :3].isfinite().all()
        expect(finite, "for an x of scale 1 to 1e6 the output is not finite")
        what, shape = "the output for the tokens before the change", (4, 3, D_OUT)
        assert_same(after[:, :3], before[:, :3], what, shape=shape)
        depends = training or (after != before).any()
        expect(depends, "the output does not depend on x")
    # Whoever computes other scores has lost points for that already.
    state = weights_of(rng)
    huge = {**state, **{f"{name}.weight": rng.randn(D_OUT, D_IN) * 1e6 for name in NAMES[:2]}}
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    output, right = (output_of(made(code, state), x) for code in (student, reference))
    same_shape = in_float64(output).shape == right.shape
    if same_shape and torch.allclose(output.double(), right, rtol=1e-6, atol=1e-5):
        output, right = (output_of(made(code, huge), x) for code in (student, reference))
        assert_close(output, right, "the output for scores of 1e12")


def output_of_seeded(student, module, x):
    """Return the output, with the same weights dropped in each call."""
    manual_seed(student, 1)
    return output_of(module, x)


@pytest.mark.points(1)
def test_parts(student, rng):
    """The only parameters are those of three linear layers; qkv_bias switches their biases on."""
    state = weights_of(rng, d_in=D_IN + 1)
    biases = {f"{name}.bias": rng.randn(D_OUT) for name in NAMES}
    for options, wanted in (({}, state), ({"qkv_bias": True}, {**state, **biases})):
        module = student.CausalAttention(D_IN + 1, D_OUT, CONTEXT, 0.0, **options)
        found = parameter_shapes(module)
        shapes = {name: tuple(value.shape) for name, value in wanted.items()}
        given = "with qkv_bias=True" if options else "without qkv_bias"
        expect(found == shapes, f"{given}, the parameters are {found}, not {shapes}")
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    module, new = made(student, weights_of(rng)), weights_of(rng)
    output_of(module, x)  # what is kept of the old weights must not count later
    again = output_of(load_parameters(module, new), x)
    assert_same(again, output_of(made(student, new), x), "the output with new weights")
    # A bias does the same as the weights of a feature that is always 1.
    biased = made(student, {**state, **biases}, d_in=D_IN + 1, qkv_bias=True)
    x = rng.randn(BATCH, N_TOKENS, D_IN + 1)
    x[..., -1] = 0
    output = output_of(biased, x)
    for name in NAMES:
        state[f"{name}.weight"][:, -1] = biases[f"{name}.bias"]
    x[..., -1] = 1
    assert_same(output, output_of(made(student, state, d_in=D_IN + 1), x), "the output with biases")


@pytest.mark.points(2)
def test_dropout(student, rng):
    """In training, each weight is dropped on its own at the rate; the rest are scaled up."""
    d_out = 9
    state = same_weights(rng, d_out=d_out)
    x = rng.randn(1, N_TOKENS, D_IN).repeat(DRAWS, 1, 1) * 0.3
    # The values are independent vectors (5 of size 9), so an output determines the weights.
    inverse = torch.linalg.pinv(x[0] @ state["W_value.weight"].T)
    plain, output, nothing = (
        in_float64(output_of(made(student, state, dropout=rate, d_out=d_out).train(), x[:draws]))
        for rate, draws in ((0.0, 2), (RATE, DRAWS), (1.0, 1))
    )
    expect(output.isfinite().all(), "the output in training is not finite")
    weights, seen = plain[0] @ inverse, output @ inverse
    dropped = seen.abs() < weights.abs() / 2
    expected = (weights / (1 - RATE)).masked_fill(dropped, 0.0)
    assert_close(seen, expected, "the weights in training (computed from the output)", atol=1e-4)
    assert_dropped(dropped[:, weights.abs() > 1e-3], RATE, "weights")
    assert_close(nothing, torch.zeros_like(nothing), "the output at rate 1")
    module = made(student, state, dropout=RATE, d_out=d_out)
    output_of(module, x[:1])  # a call in eval mode ends nothing
    assert_drawn_anew(module.train(), x)
    full = 1 if working_context(student) == N_TOKENS else CONTEXT
    module = made(student, state, dropout=RATE, d_out=d_out, context=full).train()
    alone = in_float64(output_of(module, x[:, :1])).flatten()
    expect(alone.numel() == DRAWS * d_out, "the output for a single token has another size")
    lost = alone.view(DRAWS, d_out).abs().amax(-1, keepdim=True) == 0
    assert_dropped(lost, RATE, "weights of a single token")


@pytest.mark.points(1)
def test_nothing_dropped_in_eval_mode(student, rng):
    """In eval mode nothing is dropped, whatever the rate is."""
    state = weights_of(rng)
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    without = output_of(made(student, state), x)
    for rate in (0.5, 1.0):
        module = made(student, state, dropout=rate)
        assert_same(output_of(module, x), without, "the output in eval mode")
        output_of(module.train(), x)
        assert_same(output_of(module.eval(), x), without, "the output in eval mode after training")


@pytest.mark.points(1)
def test_argument(student, rng):
    """x may be a transposed view, and is not modified."""
    assert_takes_views(student, made(student, weights_of(rng)), rng.randn(BATCH, N_TOKENS, D_IN))


@pytest.mark.points(1)
def test_moves(student, rng):
    """`module.to(…)` is enough to move everything to another device or dtype, such as bfloat16."""
    sizes = D_IN, D_OUT, working_context(student), 0.5
    make = functools.partial(student.CausalAttention, *sizes)
    assert_moves(make, rng.randn(BATCH, N_TOKENS, D_IN).float())
    state = weights_of(rng)
    x = rng.randn(BATCH, N_TOKENS, D_IN) * 0.5
    module, narrow = made(student, state), x.to(torch.bfloat16)
    wide = output_of(module, x)
    shown = "after module.to(torch.bfloat16), the output for an x in bfloat16"
    output = output_of(module.to(torch.bfloat16), narrow)
    assert_dtype(output, torch.bfloat16, shown)
    assert_close(output.double(), wide, "the output in bfloat16", rtol=0.1, atol=0.1)
    module = made(student, state, dropout=0.5).to(torch.bfloat16).train()
    assert_dtype(output_of(module, narrow), torch.bfloat16, f"{shown} in training mode")


@pytest.mark.points(1)
def test_too_many_tokens(student, rng):
    """More tokens than context_length are refused, in both modes."""
    x = rng.randn(BATCH, 2 * N_TOKENS + 2, D_IN, dtype=torch.float32)
    context = working_context(student)
    output_of(student.CausalAttention(D_IN, D_OUT, context, 0.0), x[:, :N_TOKENS].clone())
    for longest in (context, 1):
        module = student.CausalAttention(D_IN, D_OUT, longest, 0.0)
        for n_tokens in {longest + 1, 2 * longest}:
            shown = f"CausalAttention({D_IN}, {D_OUT}, {longest}, 0.0)(x) with {n_tokens} tokens"
            assert_refused_in_both_modes(student, module, x[:, :n_tokens], shown)


@pytest.mark.points(1)
def test_no_python_loops(student, reference, rng):
    """No Python loop runs over batch or tokens, nor over the places of the mask."""

    def called(batch=2, n_tokens=3):
        x, state = rng.randn(batch, n_tokens, D_IN), weights_of(rng)
        return lambda code: output_of(made(code, state, context=n_tokens + 1), x)

    grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
    assert_vectorised(student, called, grown, reference)
