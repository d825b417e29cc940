"""Probes of layer norm: what tells its mistakes apart."""

import torch

from grader.probing import build, gradients, often, probe, works_too, written

AXES = ("batch item", "token", "feature")  # of an output, in the singular


def changed(student, module, x):
    """Return which numbers of x differ after a call, 1 or 0, whatever is written there."""
    return (written(student, module, x.clone())[0] != x).double()


@probe("values")
def ordinary(student, rng):
    """Three axes and an eps that shows."""
    return build(student.LayerNorm, 6, 0.1, rng=rng)(rng.randn(2, 5, 6) * 0.3 + 0.5)


@probe("values")
def two_axes(student, rng):
    """Two axes and another eps."""
    return build(student.LayerNorm, 7, eps=0.5, rng=rng)(rng.randn(4, 7) + 1)


@probe("values")
def default_eps(student, rng):
    """The default eps and features of a hundredth."""
    return build(student.LayerNorm, 6, rng=rng)(rng.randn(2, 5, 6) * 0.01)


@probe("values")
def no_eps(student, rng):
    """An eps of 0 and features of a thousandth."""
    return build(student.LayerNorm, 6, 0.0, rng=rng)(rng.randn(2, 5, 6) * 1e-3)


@probe("square")
def square(student, rng):
    """All sizes equal."""
    return build(student.LayerNorm, 4, 0.1, rng=rng)(rng.randn(4, 4, 4) * 0.3)


@probe("leading axes")
def four_axes(student, rng):
    """Four axes."""
    return build(student.LayerNorm, 6, 0.1, rng=rng)(rng.randn(2, 3, 4, 6))


@probe("layers")
def parameters(student, rng):
    """The parameters of a new module."""
    return dict(student.LayerNorm(6).state_dict())


@probe("layers")
def trained(student, rng):
    """The shapes of what is trained."""
    module = student.LayerNorm(6)
    return {name: list(each.shape) for name, each in module.named_parameters()}


@probe("layers")
def fresh(student, rng):
    """A new module."""
    return student.LayerNorm(6, 0.1).to(torch.float64)(rng.randn(2, 5, 6))


@probe("gradient")
def gradient(student, rng):
    """The gradients of the input and of the parameters."""
    module = build(student.LayerNorm, 6, 0.1, rng=rng)
    return gradients(module, rng.randn(2, 5, 6))


@probe("training")
def training(student, rng):
    """Training mode."""
    return build(student.LayerNorm, 6, 0.1, rng=rng).train()(rng.randn(2, 5, 6))


@probe("extreme scores", decides=False)
def far_from_zero(student, rng):
    """Whether features around 2^26, whose squares have too many digits, give other outputs."""
    module = build(student.LayerNorm, 8, 0.1, rng=rng)
    x = rng.randint(-9, 10, 2, 5, 8).double()
    return often(bool(differs(module(2.0**26 + x), module(x)).any()))


def differs(outputs, others):
    """Return where outputs differ, be it by nan."""
    return ~((outputs - others).abs() <= 1e-3)


def halves(rng):
    """Return tokens with equal features, whose mean is exact."""
    return (rng.randint(-9, 10, 2, 5, 1) / 2.0).double().repeat(1, 1, 6)


@probe("extreme scores")
def constant(student, rng):
    """Features that are all equal."""
    module = build(student.LayerNorm, 6, rng=rng)
    return module(halves(rng))


@probe("extreme scores")
def gradient_of_constant(student, rng):
    """The gradients where features are all equal."""
    module = build(student.LayerNorm, 6, rng=rng)
    return gradients(module, halves(rng))


@probe("extreme scores")
def tiny(student, rng):
    """Features of a millionth."""
    module = build(student.LayerNorm, 6, 1e-12, rng=rng)
    return module(rng.randn(2, 5, 6) * 1e-6)


@probe("single")
def one_token(student, rng):
    """One token of one sentence."""
    return build(student.LayerNorm, 12, 0.1, rng=rng)(rng.randn(1, 1, 12))


@probe("views")
def transposed(student, rng):
    """x is a transposed view."""
    module = build(student.LayerNorm, 6, 0.1, rng=rng)
    return module(rng.randn(6, 5, 2).transpose(0, 2))


@probe("dtype")
def single_precision(student, rng):
    """float32."""
    module = build(student.LayerNorm, 6, 0.1, rng=rng, dtype=torch.float32)
    return module(rng.randn(2, 5, 6, dtype=torch.float32))


@probe("dtype")
def half_precision(student, rng):
    """bfloat16."""
    module = build(student.LayerNorm, 6, 0.1, rng=rng, dtype=torch.bfloat16)
    return module(rng.randn(2, 5, 6, dtype=torch.bfloat16))


@probe("writes")
def argument(student, rng):
    """x after the call."""
    module = build(student.LayerNorm, 6, 0.1, rng=rng)
    return changed(student, module, rng.randn(2, 5, 6))


@probe("writes")
def argument_without_gradients(student, rng):
    """x after a call without gradients."""
    module = build(student.LayerNorm, 6, 0.1, rng=rng)
    with torch.no_grad():
        return changed(student, module, rng.randn(2, 5, 6))


@probe("single")
def one_feature(student, rng):
    """Tokens of one feature."""
    return build(student.LayerNorm, 1, 0.1, rng=rng)(rng.randn(2, 6, 1))


@probe("views")
def transposed_works(student, rng):
    """Whether a transposed x works."""
    module, x = build(student.LayerNorm, 6, 0.1, rng=rng), rng.randn(6, 5, 2).transpose(0, 2)
    return works_too(lambda: module(x.contiguous()), lambda: module(x))


@probe("options")
def tiny_eps(student, rng):
    """An eps of 1e-10 for features of 1e-5."""
    module = build(student.LayerNorm, 6, 1e-10, rng=rng)
    return module(rng.randn(2, 5, 6) * 1e-5)


@probe("extreme scores")
def around_a_million(student, rng):
    """Whether tokens around a million, minus a million and 0 in float32 differ from those at 0."""
    module, sides = student.LayerNorm(8).eval(), 2.0**20 * torch.tensor([[1.0], [-1.0], [0.0]])
    x = torch.cat([rng.randint(-6, 7, 2, 3, 6), torch.tensor([-5, 4]).expand(2, 3, 2)], -1)
    differ = differs(module(x.float() + sides), module(x.float()))  # (batch, n_tokens, features)
    return often(*differ.any(-1).any(0).tolist())
