"""Hidden tests of stacked heads, which decide the points.

The heads are correct causal attentions, so only what joins them is graded. A check of anything but
the joined output compares the student's answers with each other, so that one mistake costs one
check.
"""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
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
    twins,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, CONTEXT, D_IN, D_OUT, HEADS = 2, 5, 6, 7, 4, 3
SIZES = (D_IN, D_OUT, CONTEXT)
LAYERS = "W_query", "W_key", "W_value"
DRAWS, RATE = 200, 0.39  # sentences in which weights are dropped


def weights_of(rng, *, d_in=D_IN, d_out=D_OUT, heads=HEADS):
    """Return random weights of all layers by name."""
    names = [f"heads.{head}.{layer}.weight" for head in range(heads) for layer in LAYERS]
    return {name: rng.randn(d_out, d_in) * 0.5 for name in names}


def made(code, state, *, sizes=SIZES, dropout=0.0, heads=HEADS, **options):
    """Return a module in float64 and evaluation mode, with the parameters `state`.

    Biases that are not in `state` are 0: another check asks whether they should be there.
    """
    module = code.StackedHeads(*sizes, dropout, heads, **options)
    names = [f"heads.{head}.{layer}.bias" for head in range(heads) for layer in LAYERS]
    return load_parameters(module, {**{name: torch.zeros(sizes[1]) for name in names}, **state})


def random_module(student, rng, **options):
    """Return a module of the student with random parameters, in float64 and evaluation mode."""
    module = student.StackedHeads(*SIZES, options.pop("dropout", 0.0), HEADS, **options)
    shapes = parameter_shapes(module)
    return load_parameters(
        module, {name: rng.randn(*shape) * 0.5 for name, shape in shapes.items()}
    )


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The heads are your own modules, not a torch function that does all of it.

    Guards: the rule itself, whatever other checks see of a forbidden call.
    """
    x = rng.randn(BATCH, N_TOKENS, D_IN, dtype=torch.float32)

    def made():
        return student.StackedHeads(*SIZES, 0.0, HEADS)

    calls = (lambda: output_of(made(), x)), lambda: student.split_weights(made())
    assert_written_by_hand(student, *calls)


@pytest.mark.points(2)
def test_heads_side_by_side(student, reference, rng):
    """The outputs of the heads are joined along the features, in the order of the heads.

    Guards: the joined output, which the check on the student's own attention sees as well.
    """
    cases = {
        (D_IN, D_OUT, HEADS): (BATCH, N_TOKENS),
        (3, 2, 5): (4, 3),
        (4, 4, 4): (4, 4),
        (6, 2, 3): (2, 4),  # as many features after as before
        (2, 1, 12): (3, 2),
    }
    for (d_in, d_out, heads), shape in cases.items():
        state = weights_of(rng, d_in=d_in, d_out=d_out, heads=heads)
        for name in state if heads == 12 else ():  # values of any size
            state[name] *= 1e8 if "W_value" in name else 1
        options = {"sizes": (d_in, d_out, CONTEXT), "heads": heads}
        theirs, ours = (made(code, state, **options) for code in (student, reference))
        x = rng.randn(*shape, d_in)
        what = f"the output of {heads} heads"
        assert_close(in_float64(output_of(theirs, x)), output_of(ours, x), what)


@pytest.mark.points(1)
def test_parts(student, rng):
    """The only parameters are those of the heads, each with its own; qkv_bias adds biases."""
    state = weights_of(rng, d_in=D_IN + 1)
    biases = {name.replace("weight", "bias"): rng.randn(D_OUT) for name in state}
    sizes = (D_IN + 1, D_OUT, CONTEXT)
    for options, wanted in (({}, state), ({"qkv_bias": True}, {**state, **biases})):
        module = student.StackedHeads(*sizes, 0.0, HEADS, **options)
        found = parameter_shapes(module)
        shapes = {name: tuple(value.shape) for name, value in wanted.items()}
        given = "with qkv_bias=True" if options else "without qkv_bias"
        wrong = ", ".join(sorted(set(found) ^ set(shapes)))
        expect(not wrong, f"{given}, these parameters are missing or unexpected: {wrong}")
        for name, shape in shapes.items():
            expect(found[name] == shape, f"{name} has the shape {found[name]}, not {shape}")
        fresh = [value.detach().flatten() for name, value in module.named_parameters()]
        alike = any(
            torch.equal(one, other) for i, one in enumerate(fresh) for other in fresh[i + 1 :]
        )
        expect(not alike, "some heads start with the same weights")
        # Buffers, such as a mask, are the code's own affair.
        saved = {name for name in module.state_dict() if name.endswith(("weight", "bias"))}
        more = ", ".join(sorted(saved - set(shapes)))
        expect(not more, f"the state_dict holds {more} as well")


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """In both modes, gradients reach x and all parameters, and are the slopes of the output."""
    state = weights_of(rng)
    theirs, ours = (made(code, state, dropout=RATE) for code in (student, reference))
    assert_slopes(student, theirs, ours, {"x": rng.randn(BATCH, N_TOKENS, D_IN)}, rng=rng)


@pytest.mark.points(1)
def test_options(student, rng):
    """dropout, context_length and qkv_bias reach the heads, and nothing else is dropped."""
    state = weights_of(rng)
    assert_heads_drop(student, state, rng.randn(1, 1, D_IN))
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    module = made(student, state, dropout=0.5)
    without = output_of(made(student, state), x)
    assert_same(output_of(module, x), without, "the output in eval mode")
    for context in (CONTEXT, 1):
        x = rng.randn(BATCH, context + 1, D_IN, dtype=torch.float32)
        short = student.StackedHeads(D_IN, D_OUT, context, 0.0, HEADS)
        output_of(short, x[:, :context].clone())
        shown = f"StackedHeads({D_IN}, {D_OUT}, {context}, …)(x) with {context + 1} tokens"
        assert_refused_in_both_modes(student, short, x, shown)
    # A bias does the same as the weights of a feature that is always 1.
    sizes = (D_IN + 1, D_OUT, CONTEXT)
    state = weights_of(rng, d_in=D_IN + 1)
    biases = {name.replace("weight", "bias"): rng.randn(D_OUT) for name in state}
    biased = made(student, {**state, **biases}, sizes=sizes, qkv_bias=True)
    if any("bias" in name for name in parameter_shapes(biased)):  # another check asks for them
        x = rng.randn(BATCH, N_TOKENS, D_IN + 1)
        x[..., -1] = 0
        output = output_of(biased, x)
        for name in state:
            state[name][:, -1] = biases[name.replace("weight", "bias")]
        x[..., -1] = 1
        plain = output_of(made(student, state, sizes=sizes), x)
        assert_same(output, plain, "the output with biases")


def assert_heads_drop(student, state, x):
    """Raise `Mismatch` unless each head drops weights at the rate, and nothing else is dropped.

    Only one head at a time has values. A single token has the weight 1, so that head gives its
    value or nothing, however the heads are joined.
    """
    drops = []
    for head in range(HEADS):
        others = [f"heads.{other}.W_value.weight" for other in range(HEADS) if other != head]
        alone = {**state, **dict.fromkeys(others, torch.zeros(D_OUT, D_IN))}
        plain, output, nothing = (
            in_float64(output_of(made(student, alone, dropout=rate).train(), x.repeat(draws, 1, 1)))
            for rate, draws in ((0.0, 1), (RATE, DRAWS), (1.0, 1))
        )
        expect(output.isfinite().all(), "the output in training is not finite")
        assert_close(nothing, torch.zeros_like(nothing), "the output at rate 1")
        value = plain.flatten()
        if value.any():
            seen = output.reshape(-1, value.numel())
            drops.append(seen.abs().amax(-1) < value.abs().amax() / 2)
            expected = (value / (1 - RATE)).expand_as(seen).masked_fill(drops[-1][:, None], 0.0)
            assert_close(seen, expected, "the output of a head in training", atol=1e-4)
    expect(drops, "in training, the output is always 0")
    module = made(student, state, dropout=RATE).train()
    silent = (
        (in_float64(output_of(module, x.repeat(DRAWS, 1, 1))) == 0).flatten(1).all(1)
    )  # (DRAWS,)
    expect(silent.double().mean() < RATE / 2, "all heads drop the same weights")
    assert_dropped(torch.stack(drops, dim=-1), RATE, "weights of the heads")


@pytest.mark.points(1)
def test_split_weights(student, reference, rng):
    """split_weights gives three matrices with the rows of all heads; biases are refused."""
    for d_in, d_out, heads in ((D_IN, D_OUT, HEADS), (4, 2, 2), (3, 5, 1), (1, 1, 1), (2, 1, 12)):
        state = weights_of(rng, d_in=d_in, d_out=d_out, heads=heads)
        module = made(student, state, sizes=(d_in, d_out, CONTEXT), heads=heads)
        x = rng.randn(BATCH, N_TOKENS, d_in)
        before = output_of(module, x)
        found = student.split_weights(module)
        is_three = isinstance(found, list | tuple) and len(found) == 3
        expect(is_three, "split_weights does not return three matrices")
        right = {
            layer: torch.cat([state[f"heads.{head}.{layer}.weight"] for head in range(heads)])
            for layer in LAYERS
        }
        matrices = {layer: in_float64(matrix).detach() for layer, matrix in zip(LAYERS, found)}
        # Heads of another module than is asked for may have matrices of their own.
        own = recomputed(reference, matrices, heads, x)
        if own is None or own.shape != before.shape or not torch.allclose(own, before.double()):
            for layer, matrix in matrices.items():
                assert_close(matrix, right[layer], f"the matrix {layer}")
        what = "the output of the module after split_weights"
        assert_same(output_of(module, x), before, what)
    module, other = random_module(student, rng), random_module(student, rng)
    student.split_weights(module)
    load_parameters(module, other.state_dict())
    for layer, one, right in zip(LAYERS, *map(student.split_weights, (module, other))):
        what = f"the matrix {layer} after other weights were loaded"
        assert_same(in_float64(one).detach(), in_float64(right).detach(), what)
    for mode in (True, False):
        module = made(student, weights_of(rng), dropout=1.0).train(mode)
        x = rng.randn(BATCH, N_TOKENS, D_IN)
        before, learning = output_with_seed(student, module, x), reached(module, x)
        student.split_weights(module)
        what = f"in {'training' if mode else 'eval'} mode, the output after split_weights"
        assert_same(output_with_seed(student, module, x), before, what)
        expect(reached(module, x) == learning, "after split_weights, no gradient reaches the heads")
    biased = student.StackedHeads(*SIZES, 0.0, HEADS, qkv_bias=True)
    if any("bias" in name for name in parameter_shapes(biased)):  # another check asks for them
        zero = made(student, weights_of(rng), qkv_bias=True)
        for module, shown in ((biased, "biases"), (zero, "biases, which are 0")):
            call = functools.partial(student.split_weights, module)
            assert_refused(student, call, f"split_weights of a module with {shown}")


def reached(module, x):
    """Return the names of the parameters that a gradient of the output reaches."""
    module.zero_grad()
    output = in_float64(module(x))
    if output.requires_grad:
        output.sum().backward()
    return {name for name, each in module.named_parameters() if each.grad is not None}


def output_with_seed(student, module, x):
    """Return an output; two of the same module drop the same weights."""
    manual_seed(student, 5)
    return output_of(module, x)


def recomputed(reference, matrices, heads, x):
    """Return the output of heads with these rows of matrices, or None if the rows do not fit."""
    rows, d_in = matrices["W_query"].numel() // x.shape[-1], x.shape[-1]
    if rows % heads or any(matrix.shape != (rows, d_in) for matrix in matrices.values()):
        return None
    d_out = rows // heads
    state = {
        f"heads.{head}.{layer}.weight": matrix[head * d_out : (head + 1) * d_out]
        for layer, matrix in matrices.items()
        for head in range(heads)
    }
    return output_of(made(reference, state, sizes=(d_in, d_out, CONTEXT), heads=heads), x)


@pytest.mark.points(1)
def test_any_input(student, rng):
    """Any batch, one token, one head and one feature work; views and dtypes, too; x stays."""
    module = random_module(student, rng)
    x = rng.randn(3, N_TOKENS, D_IN)
    output = in_float64(output_of(module, x))
    alone = output_of(module, x[:1])
    assert_same(alone, output[:1], "the output for a batch of 1", shape=tuple(output[:1].shape))
    # The first token attends to itself alone, whatever comes after it.
    token = output_of(module, x[:, :1])
    first = output[:, :1]
    assert_same(token, first, "the output for a single token", shape=tuple(first.shape))
    for d_out, heads in ((1, HEADS), (D_OUT, 1), (1, 1)):
        narrow = student.StackedHeads(D_IN, d_out, CONTEXT, 0.0, heads)
        found = tuple(in_float64(output_of(narrow, x[:1].float())).shape)
        shown = f"for {heads} heads of size {d_out}, the output has shape {found}"
        expect(len(found) == 3, shown)
    assert_takes_views(student, random_module(student, rng), rng.randn(BATCH, N_TOKENS, D_IN))
    x = rng.randn(BATCH, N_TOKENS, D_IN) * 0.5
    wide = output_of(module, x)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        output = output_of(module.to(dtype), x.to(dtype))
        assert_dtype(output, dtype, f"after module.to({dtype}), the output")
        assert_close(output.double(), wide, f"the output in {dtype}", rtol=0.1, atol=0.1)
        for matrix in student.split_weights(module):
            assert_dtype(matrix, dtype, f"after module.to({dtype}), what split_weights returns")


@pytest.mark.points(1)
def test_no_python_loops(student, rng):
    """No Python loop runs over batch or tokens, nor over the places of a mask."""

    def called(batch=2, n_tokens=3):
        x, options = rng.randn(batch, n_tokens, D_IN).float(), (D_OUT, n_tokens + 1, 0.0, HEADS)
        return lambda: output_of(student.StackedHeads(D_IN, *options), x)

    grown = {"sentences": {"batch": (9, 19)}, "tokens": {"n_tokens": (14, 31)}}
    assert_vectorised(student, called, grown)


@pytest.mark.own_parts
@pytest.mark.points(0)
def test_on_your_own_attention(student, reference, rng):
    """With your own causal attention, the heads give the same output.

    Guards: the student's earlier exercise works here. A mistake in it has already cost points
    there, so this test is worth none.
    """
    sizes = (*SIZES, 0.0, HEADS)
    theirs, ours = twins(student.StackedHeads, reference.StackedHeads, *sizes, rng=rng)
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    assert_close(output_of(theirs, x), output_of(ours, x))
