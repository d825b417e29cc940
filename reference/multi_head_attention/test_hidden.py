"""Hidden tests of multi-head attention, which decide the points.

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
    assert_refused,
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

BATCH, N_TOKENS, CONTEXT, D_IN, HEADS, D_HEAD = 2, 5, 6, 7, 3, 4
D_OUT = HEADS * D_HEAD
NAMES = "W_query", "W_key", "W_value"
DRAWS, RATE = 200, 0.39  # sentences of which the weights are dropped


def weights_of(rng, *, d_in=D_IN, d_out=D_OUT):
    """Return random parameters of the four layers by name."""
    state = {f"{name}.weight": rng.randn(d_out, d_in) * 0.5 for name in NAMES}
    out_proj = {"out_proj.weight": rng.randn(d_out, d_out) * 0.5, "out_proj.bias": rng.randn(d_out)}
    return {**state, **out_proj}


def same_weights(rng, *, d_out=D_OUT):
    """Return the same random weights for three layers, so that a swapped layer does not matter.

    out_proj changes nothing.
    """
    state = dict.fromkeys((f"{name}.weight" for name in NAMES), rng.randn(d_out, D_IN) * 0.5)
    identity = torch.eye(d_out, dtype=torch.float64)
    return {**state, "out_proj.weight": identity, "out_proj.bias": torch.zeros_like(identity[0])}


def made(code, state, *, context=None, dropout=0.0, heads=HEADS, d_in=D_IN, d_out=D_OUT, **options):
    """Return a module in float64 and evaluation mode, with the parameters `state`.

    Biases that are not in `state` are 0: another check asks whether they should be there.
    Without `context`, it is one at which the code works.
    """
    context = context or working_context(code)
    module = code.MultiHeadAttention(d_in, d_out, context, dropout, heads, **options)
    biases = {f"{name}.bias": torch.zeros(d_out) for name in NAMES}
    return load_parameters(module, {**biases, **state})


@functools.lru_cache(maxsize=2)
def working_context(code):
    """Return a context length at which the code takes N_TOKENS tokens: N_TOKENS, or CONTEXT.

    Code that needs a full context, or refuses one, fails in the check of the sizes alone.
    """
    x = torch.ones(1, N_TOKENS, D_IN)
    try:
        output_of(code.MultiHeadAttention(D_IN, D_OUT, N_TOKENS, 0.0, HEADS), x)
    except Exception:  # the check itself reports what is wrong
        return CONTEXT
    return N_TOKENS


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    x = rng.randn(BATCH, N_TOKENS, D_IN, dtype=torch.float32)
    sizes = D_IN, D_OUT, CONTEXT, 0.0, HEADS
    assert_written_by_hand(student, lambda: output_of(student.MultiHeadAttention(*sizes), x))


@pytest.mark.points(4)
def test_multi_head_attention(student, reference, rng):
    """The output matches the formula."""
    cases = {(HEADS, D_HEAD): (N_TOKENS, 1.0), (6, 1): (N_TOKENS, 1e-6), (2, 5): (2, 1e6)}
    for (heads, d_head), (n_tokens, scale) in cases.items():
        options = {"context": CONTEXT, "heads": heads, "d_out": heads * d_head}
        state = weights_of(rng, d_out=heads * d_head)
        # Large queries or keys and values, but ordinary scores.
        for name, size in zip(NAMES, (1 / scale, scale, max(scale, 1))):
            state[f"{name}.weight"] = state[f"{name}.weight"] * size
        theirs, ours = (made(code, state, **options) for code in (student, reference))
        x = rng.randn(BATCH, n_tokens, D_IN) * 0.7
        assert_close(output_of(theirs, x), output_of(ours, x), atol=1e-5 * max(scale, 1))


@pytest.mark.points(2)
def test_not_causal(student, rng):
    """With causal=False, every token attends to all tokens, as the last one does otherwise."""
    biases = {f"{name}.bias": rng.randn(D_OUT) for name in NAMES}
    for options, more in (({}, {}), ({"qkv_bias": True}, biases)):
        state = {**weights_of(rng), **more}
        causal = made(student, state, causal=True, **options)
        module = made(student, state, causal=False, **options)
        x = rng.randn(BATCH, N_TOKENS, D_IN) * 0.7
        order = rng.permutation(N_TOKENS)
        output, turned = in_float64(output_of(module, torch.cat([x, x[:, order]]))).chunk(2)
        last = in_float64(output_of(causal, x))
        shape = (BATCH, D_OUT)
        assert_same(output[:, -1], last[:, -1], "the output for the last token", shape=shape)
        what = "the output for tokens in another order, put back in order,"
        assert_same(turned, output[:, order], what)


@pytest.mark.points(2)
def test_gradients(student, reference, rng):
    """In both modes, gradients reach x and all parameters, and are the slopes of the output."""
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    for causal in (True, False):
        state, options = weights_of(rng), {"dropout": RATE, "causal": causal}
        theirs, ours = (made(code, state, **options) for code in (student, reference))
        assert_slopes(student, theirs, ours, {"x": x}, rng=rng)


@pytest.mark.points(1)
def test_any_size(student, rng):
    """A batch of any size, 1 to context_length tokens, one head and one output feature work.

    Guards: a token of zeros, whose scores are 0.
    """
    state = same_weights(rng)
    module, longer = (made(student, state, context=context) for context in (CONTEXT, CONTEXT + 3))
    x = rng.randn(3, CONTEXT, D_IN) * 0.7
    output, whole = in_float64(output_of(module, x)), (3, CONTEXT, D_OUT)
    assert_same(output, output_of(longer, x), "the output for a full context", shape=whole)
    alone = output_of(module, x[:1])
    assert_same(alone, output[:1], "the output for a batch of 1", shape=(1, CONTEXT, D_OUT))
    shortest = output_of(made(student, state, context=1), x[:, :1])
    first = output_of(module, x[:, :1])
    assert_same(shortest, first, "the output for a context_length of 1", shape=(3, 1, D_OUT))
    growing = made(student, state, context=CONTEXT)
    output_of(growing, x[:, :2].clone())
    assert_same(output_of(growing, x), output, "the output after a call with fewer tokens")
    # A score of 0 is a score like any other.
    zeros = x.clone()
    zeros[:, 0] = 0.0
    finite = in_float64(output_of(module, zeros)).isfinite() | ~output.isfinite()
    expect(finite.all(), "the output for a text with a token of zeros is not finite")
    # Whatever the weights are, the mean of two equal values is that value.
    twice = in_float64(output_of(module, x[:, :1].repeat(1, 2, 1)))[:, :1]
    assert_same(first, twice, "the output for a single token", shape=(3, 1, D_OUT))
    alone = output_of(module, x[:1, :1])
    assert_same(alone, twice[:1], "the output for one token alone", shape=(1, 1, D_OUT))
    narrow = made(student, weights_of(rng, d_out=1), heads=1, d_out=1, context=CONTEXT)
    found = tuple(in_float64(output_of(narrow, x)).shape)
    expect(found == (3, CONTEXT, 1), f"the output for a d_out of 1 has shape {found}")
    # Two equal heads, of which out_proj takes the first, give what one such head gives.
    small = weights_of(rng, d_out=D_HEAD)
    large = {name: torch.cat([small[name]] * 2) for name in small}
    large["out_proj.weight"] = torch.block_diag(*[small["out_proj.weight"]] * 2)
    one, two = (
        made(student, state, heads=heads, d_out=heads * D_HEAD)
        for heads, state in ((1, small), (2, large))
    )
    for x in (rng.randn(3, N_TOKENS, D_IN), rng.randn(1, N_TOKENS, D_IN)):
        expected = in_float64(output_of(two, x))[..., :D_HEAD]
        shape = (*x.shape[:2], D_HEAD)
        assert_same(output_of(one, x), expected, "the output of a single head", shape=shape)


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
    """The only parameters are those of four linear layers; qkv_bias switches three biases on."""
    state = weights_of(rng, d_in=D_IN + 1)
    biases = {f"{name}.bias": rng.randn(D_OUT) for name in NAMES}
    for options, wanted in (((), state), ((True,), {**state, **biases})):
        module = student.MultiHeadAttention(D_IN + 1, D_OUT, CONTEXT, 0.0, HEADS, *options)
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
    d_head = 6
    d_out = HEADS * d_head
    state = same_weights(rng, d_out=d_out)
    x = rng.randn(1, N_TOKENS, D_IN).repeat(DRAWS, 1, 1) * 0.3

    def by_head(tensor):
        return tensor.unflatten(-1, (HEADS, d_head)).transpose(-3, -2)

    # A head's values are independent (5 of size 6), so an output determines the weights.
    inverse = torch.linalg.pinv(by_head(x[0] @ state["W_value.weight"].T))
    plain, output, nothing = (
        in_float64(output_of(made(student, state, dropout=rate, d_out=d_out).train(), x[:draws]))
        for rate, draws in ((0.0, 2), (RATE, DRAWS), (1.0, 1))
    )
    shapes = (2, N_TOKENS, d_out), (DRAWS, N_TOKENS, d_out)
    expect((plain.shape, output.shape) == shapes, "the output in training has another shape")
    expect(output.isfinite().all(), "the output in training is not finite")
    weights, seen = by_head(plain[0]) @ inverse, by_head(output) @ inverse
    dropped = seen.abs() < weights.abs() / 2
    expected = (weights / (1 - RATE)).masked_fill(dropped, 0.0)
    assert_close(seen, expected, "the weights in training (computed from the output)", atol=1e-4)
    assert_dropped(dropped[:, weights.abs() > 1e-3], RATE, "weights")
    assert_close(nothing, torch.zeros_like(nothing), "the output at rate 1, less the bias")
    module = made(student, state, dropout=RATE, d_out=d_out)
    output_of(module, x[:1])  # a call in eval mode ends nothing
    assert_drawn_anew(module.train(), x)
    full = 1 if working_context(student) == N_TOKENS else CONTEXT
    module = made(student, state, dropout=RATE, d_out=d_out, context=full).train()
    alone = in_float64(output_of(module, x[:, :1])).flatten()
    expect(alone.numel() == DRAWS * d_out, "the output for a single token has another size")
    lost = alone.view(DRAWS, HEADS, d_head).abs().amax(-1) == 0
    assert_dropped(lost, RATE, "weights of a single token")
    module = made(student, same_weights(rng, d_out=d_head), dropout=1.0, heads=1, d_out=d_head)
    nothing = in_float64(output_of(module.train(), x[:1]))
    what = "the output of a single head at rate 1, less the bias"
    assert_close(nothing, torch.zeros_like(nothing), what)


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
    sizes = D_IN, D_OUT, working_context(student), 0.5, HEADS
    make = functools.partial(student.MultiHeadAttention, *sizes)
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
def test_misuse(student, rng):
    """More tokens than context_length, and heads that do not divide d_out, are refused."""
    make, context = student.MultiHeadAttention, working_context(student)
    x = rng.randn(BATCH, 2 * N_TOKENS + 2, D_IN, dtype=torch.float32)
    for longest, options in ((context, {}), (context, {"causal": False}), (1, {})):
        module = make(D_IN, D_OUT, longest, 0.0, HEADS, **options)
        if longest == context:
            output_of(module, x[:, :N_TOKENS].clone())
        given = "".join(f", {name}={value}" for name, value in options.items())
        for n_tokens in {longest + 1, 2 * longest}:
            shown = f"MultiHeadAttention({D_IN}, {D_OUT}, {longest}, 0.0, {HEADS}{given})(x) with "
            says = f"{shown}{n_tokens} tokens"
            assert_refused_in_both_modes(student, module, x[:, :n_tokens], says)
    for d_out, heads in ((D_OUT, 5), (6, 4), (4, 8)):  # 4 has a factor in common with 6
        shown = f"MultiHeadAttention({D_IN}, {d_out}, {context}, 0.0, {heads})"
        call = functools.partial(make, D_IN, d_out, context, 0.0, heads)
        assert_refused(student, call, shown)


@pytest.mark.points(1)
def test_no_python_loops(student, reference, rng):
    """No Python loop runs over batch, heads or tokens, nor over the places of the mask."""

    def called(batch=2, n_tokens=3, heads=3):
        x, state = rng.randn(batch, n_tokens, D_IN), weights_of(rng, d_out=12)
        options = {"context": n_tokens + heads, "heads": heads, "d_out": 12}
        return lambda code: output_of(made(code, state, **options), x)

    grown = {
        "sentences": {"batch": (105, 211)},
        "tokens": {"n_tokens": (108, 217)},
        "heads": {"heads": (6, 12)},
    }
    assert_vectorised(student, called, grown, reference)
