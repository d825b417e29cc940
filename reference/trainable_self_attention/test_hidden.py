"""Hidden tests of trainable self-attention, which decide the points.

A check of anything but the formula compares the student's answers with each other, so that one
mistake costs one check.
"""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_depends,
    assert_dtype,
    assert_refused,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    output_of,
    parameter_shapes,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, D_IN, D_OUT = 2, 5, 7, 4
NAMES = "W_query", "W_key", "W_value"
VERSIONS = "SelfAttentionV1", "SelfAttentionV2"


def weights_of(rng, *, d_in=D_IN, d_out=D_OUT):
    """Return random matrices (d_in, d_out) by name."""
    return {name: rng.randn(d_in, d_out) * 0.5 for name in NAMES}


def made(code, version, weights, **options):
    """Return a module in float64 and evaluation mode, with these matrices (d_in, d_out).

    Biases are 0: another check asks whether they should be there.
    """
    d_in, d_out = weights["W_query"].shape
    state = {f"{name}.bias": torch.zeros(d_out) for name in NAMES}
    state |= weights if version == "SelfAttentionV1" else linear(weights)
    return load_parameters(getattr(code, version)(d_in, d_out, **options), state)


def linear(weights):
    """Return the matrices as weights of linear layers."""
    return {f"{name}.weight": weight.T.contiguous() for name, weight in weights.items()}


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the calls that the exercise forbids.
    """
    x = rng.randn(BATCH, N_TOKENS, D_IN, dtype=torch.float32)

    def called(version):
        return output_of(getattr(student, version)(D_IN, D_OUT), x)

    assert_written_by_hand(student, *(functools.partial(called, each) for each in VERSIONS))


@pytest.mark.points(2)
def test_formula(student, reference, rng):
    """V1 and V2 give the output of the formula."""
    for version in VERSIONS:
        for (n_tokens, d_in, d_out), scale in {
            (5, 7, 4): 1.0,
            (6, 3, 8): 1e-6,
            (2, 5, 6): 1e6,
            (4, 4, 4): 1.0,
        }.items():
            weights = weights_of(rng, d_in=d_in, d_out=d_out)
            # Large queries or keys and values, but ordinary scores.
            for name, size in zip(NAMES, (1 / scale, scale, max(scale, 1))):
                weights[name] = weights[name] * size
            theirs, ours = (made(code, version, weights) for code in (student, reference))
            x = rng.randn(n_tokens, d_in)
            output, right = in_float64(output_of(theirs, x)), output_of(ours, x)
            what = f"the output of {version}"
            assert_close(output, right, what, atol=1e-5 * max(scale, 1))


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach x and all parameters, and are the slopes of the output."""
    for version in VERSIONS:
        weights = weights_of(rng)
        theirs, ours = (made(code, version, weights) for code in (student, reference))
        assert_slopes(student, theirs, ours, {"x": rng.randn(N_TOKENS, D_IN)}, rng=rng)


@pytest.mark.points(1)
def test_parts(student, rng):
    """V1 has three matrices, uniform in [0, 1); V2 three linear layers, with biases on request."""
    weights = weights_of(rng, d_in=D_IN + 1)
    biases = {f"{name}.bias": rng.randn(D_OUT) for name in NAMES}
    sizes = D_IN + 1, D_OUT
    for module, wanted, shown in (
        (student.SelfAttentionV1(*sizes), weights, "V1"),
        (student.SelfAttentionV2(*sizes), linear(weights), "V2"),
        (
            student.SelfAttentionV2(*sizes, qkv_bias=True),
            linear(weights) | biases,
            "V2 with biases",
        ),
    ):
        found = parameter_shapes(module)
        shapes = {name: tuple(value.shape) for name, value in wanted.items()}
        expect(found == shapes, f"the parameters of {shown} are {found}, not {shapes}")
    # A bias does the same as the weights of a feature that is always 1.
    biased = made(student, "SelfAttentionV2", weights, qkv_bias=True)
    biased.load_state_dict(biases, strict=False)
    x = rng.randn(N_TOKENS, D_IN + 1)
    x[..., -1] = 0
    output = output_of(biased, x)
    for name in NAMES:
        weights[name][-1] = biases[f"{name}.bias"]
    x[..., -1] = 1
    plain = made(student, "SelfAttentionV2", weights)
    assert_same(output, output_of(plain, x), "the output of V2 with biases")
    drawn = [dict(student.SelfAttentionV1(50, 40).named_parameters()) for _ in range(2)]
    numbers = [each[name].detach().double().flatten() for each in drawn for name in NAMES]
    for values in numbers:
        # The share of 2,000 numbers below each tenth; the margin is seven times what it varies by.
        shares = [(values < tenth / 10).double().mean().item() for tenth in range(11)]
        is_even = all(abs(share - tenth / 10) < 0.08 for tenth, share in enumerate(shares))
        expect(
            shares[0] == 0 and values.max() <= 1 and is_even, "V1 does not start uniform in [0, 1)"
        )
    together = torch.corrcoef(torch.stack(numbers)).fill_diagonal_(0).abs().max()
    expect(together < 0.5, "some of the matrices of V1 start with the same numbers")


@pytest.mark.points(1)
def test_copy(student, rng):
    """After copy_weights, V1 has the weights of V2, and gives the same outputs."""
    for d_in, d_out in ((D_IN, D_OUT), (3, 5), (4, 4), (3, 1), (1, 5)):
        weights, before = (weights_of(rng, d_in=d_in, d_out=d_out) for _ in range(2))
        source = made(student, "SelfAttentionV2", weights)
        target = made(student, "SelfAttentionV1", before)
        student.copy_weights(source, target)
        x = rng.randn(N_TOKENS, d_in)
        found = dict(target.named_parameters())
        for name in NAMES:
            # A V1 that keeps its matrices in another way may give the same outputs.
            if name in found and found[name].shape == weights[name].shape:
                what = f"{name} of V1 after the copy"
                assert_close(in_float64(found[name]).detach(), weights[name], what, rtol=0, atol=0)
                continue
            what = f"after the copy, {name} is another matrix, and the output of V1"
            output = assert_depends(in_float64(output_of(source, x)))
            assert_same(in_float64(output_of(target, x)), output, what)


@pytest.mark.points(1)
def test_copy_is_separate(student, rng):
    """After the copy, neither module changes the other, V1 can be trained; biases are refused."""
    for d_out in (D_OUT, 1):
        assert_separate(student, rng, d_out)
    frozen = made(student, "SelfAttentionV2", weights_of(rng))
    frozen.requires_grad_(False)
    target, x = made(student, "SelfAttentionV1", weights_of(rng)), rng.randn(N_TOKENS, D_IN)
    trained = reached(target, x)
    student.copy_weights(frozen, target)
    lost = ", ".join(sorted(trained - reached(target, x)))
    expect(not lost, f"after the copy of a V2 that is frozen, no gradient reaches {lost} of V1")
    new = student.SelfAttentionV2(D_IN, D_OUT, qkv_bias=True)
    if not any("bias" in name for name in parameter_shapes(new)):
        return  # another check asks for biases
    zero = made(student, "SelfAttentionV2", weights_of(rng), qkv_bias=True)
    for biased, shown in ((new.to(torch.float64), "biases"), (zero, "biases, which are 0")):
        target = made(student, "SelfAttentionV1", weights_of(rng))
        call = functools.partial(student.copy_weights, biased, target)
        assert_refused(student, call, f"copy_weights with a source that has {shown}")


def assert_separate(student, rng, d_out):
    """Raise `Mismatch` unless, after a copy, each module keeps what it has if the other changes."""
    source = made(student, "SelfAttentionV2", weights_of(rng, d_out=d_out))
    target = made(student, "SelfAttentionV1", weights_of(rng, d_out=d_out))
    x = rng.randn(N_TOKENS, D_IN)
    given, others, trained = output_of(source, x), parameter_shapes(target), reached(target, x)
    learns = reached(source, x)
    student.copy_weights(source, target)
    assert_same(output_of(source, x), given, "the output of the source after the copy")
    found = parameter_shapes(target)
    expect(found == others, f"after the copy, the parameters of V1 are {found}, not {others}")
    source.zero_grad()
    lost = ", ".join(sorted(trained - reached(target, x)))
    expect(not lost, f"after the copy, no gradient reaches {lost} of V1")
    part = any(each.grad is not None and each.grad.any() for each in source.parameters())
    expect(not part, "after the copy, V1 is a part of the graph of V2")
    expect(reached(source, x) == learns, "after the copy, V2 cannot be trained as before")
    copied = output_of(target, x)
    source.load_state_dict(linear(weights_of(rng, d_out=d_out)), strict=False)
    assert_same(output_of(target, x), copied, "the output of V1 after V2 has changed")
    changed = output_of(source, x)
    target.load_state_dict(weights_of(rng, d_out=d_out), strict=False)
    assert_same(output_of(source, x), changed, "the output of V2 after V1 has changed")
    expect((output_of(target, x) != copied).any(), "after the copy, V1 does not take new weights")


def reached(module, x):
    """Return the names of the parameters that a loss of the output has gradients for."""
    module.zero_grad()
    in_float64(module(x)).square().sum().backward()
    found = module.named_parameters()
    return {name for name, each in found if each.grad is not None and each.grad.any()}


@pytest.mark.points(1)
def test_any_input(student, reference, rng):
    """x may have any leading axes, size, dtype and memory layout, and is not modified."""
    for version in VERSIONS:
        weights = weights_of(rng)
        module, right = (made(code, version, weights) for code in (student, reference))
        plain = rng.randn(N_TOKENS, D_IN)
        own = functools.partial(output_of, module)
        is_right = close(own(plain), output_of(right, plain), 1e-5)
        for leading in ((3,), (1,), (2, 6), (1, 1)):
            x = rng.randn(*leading, N_TOKENS, D_IN)

            def each(x=x, own=own):
                items = [own(item) for item in x.flatten(0, -3)]
                return assert_depends(torch.stack(items).view(*x.shape[:-2], *items[0].shape))

            what = f"the output of {version} for leading axes {leading}"
            assert_right_or_own(own(x), output_of(right, x), each, what)
        # Whatever the weights are, the mean of two equal values is that value.
        token = plain[:1]
        twice = own(token.repeat(2, 1))
        what = f"the output of {version} for a single token"
        assert_right_or_own(own(token), output_of(right, token), lambda t=twice: t[:1], what)
        narrow = made(student, version, weights_of(rng, d_out=1))
        found = tuple(in_float64(output_of(narrow, plain)).shape)
        expect(found == (N_TOKENS, 1), f"{version} gives the shape {found} for a d_out of 1")
        large = own(plain * 1e3)
        expect(in_float64(large).isfinite().all(), f"{version} is not finite for scores of 1e6")
        if is_right:
            assert_close(large.double(), output_of(right, plain * 1e3), f"{version} for large x")
        batch = rng.randn(3, N_TOKENS, D_IN)
        for x in (plain, batch) if close(own(batch), output_of(right, batch), 1e-5) else (plain,):
            for view in views_of(x):
                output = assert_unchanged(student, own, view, names=["x"])
                assert_same(output, own(x), f"the output of {version} for a view")
        assert_unchanged(student, module, plain, names=["x"])  # with gradients
        wide = own(plain * 0.5)
        for dtype in (torch.float32, torch.bfloat16):
            output = output_of(module.to(dtype), (plain * 0.5).to(dtype))
            assert_dtype(output, dtype, f"after module.to({dtype}), the output of {version}")
            if is_right:
                assert_close(output.double(), wide, f"the output in {dtype}", rtol=0.1, atol=0.1)


def close(found, right, most):
    """Return whether an answer is right."""
    found = in_float64(found)
    return found.shape == right.shape and bool((found - right).abs().max() < most)


def views_of(x):
    """Return x, and the same numbers in other layouts of memory."""
    swaps = [(-1, -2), (0, 1)][: x.ndim - 1]
    return [x, *(x.transpose(*swap).contiguous().transpose(*swap) for swap in swaps)]


@pytest.mark.points(1)
def test_no_python_loops(student, rng):
    """No Python loop runs over leading axes or tokens."""
    for version in VERSIONS:

        def called(leading=(), n_tokens=3, version=version):
            x = rng.randn(*leading, n_tokens, D_IN).float()
            return lambda: output_of(getattr(student, version)(D_IN, D_OUT), x)

        grown = {"tokens": {"n_tokens": (14, 31)}, "sentences": {"leading": ((6,), (13,))}}
        assert_vectorised(student, called, grown)
