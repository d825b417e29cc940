"""The checks of trainable self-attention and their cases."""

import functools
import math

import pytest
import torch

from grader.authors import (
    ACCEPTED,
    Aspect,
    Check,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    expect,
    gradient,
    often,
    output,
    output_of,
    parameter_shapes,
    parameters,
    seeded,
    turned,
    works_too,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
N, D_IN, D_OUT = 5, 3, 6
NAMES = ("W_query", "W_key", "W_value")
V1, V2 = "SelfAttentionV1", "SelfAttentionV2"
LINEAR = Aspect("linear layers", "what `SelfAttentionV2` returns")
COPY = Aspect("copy", "what is in both modules after `copy_weights`")
SEPARATE = Aspect("separate", "what the modules share after `copy_weights`", is_edge=True)
START = Aspect("start", "the numbers that V1 starts with", is_edge=True)
x = drawn(N, D_IN)


def made(version, d_in=D_IN, d_out=D_OUT, *options, **settings):
    """Return what makes a module whose three projections have random parameters."""
    return built(version, d_in, d_out, *options, layers=NAMES, **settings)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it."""
    tokens = rng.randn(2, N, D_IN, dtype=torch.float32)

    def called(version):
        return output_of(getattr(student, version)(D_IN, D_OUT), tokens)

    assert_written_by_hand(student, *(functools.partial(called, each) for each in (V1, V2)))


test_formula = Check("V1 and V2 give the output of the formula.", points=3)
test_gradients = Check(
    "Gradients reach x and all parameters, and are the slopes of the output.", about="gradient"
)
test_any_input = Check(
    "x may have any leading axes, size, dtype and memory layout, and is not modified.",
    about="leading axes",
)
formula, slopes, inputs = test_formula.case, test_gradients.case, test_any_input.case


def other_scale(make, size):
    """Return a case: large keys and tiny queries, or the reverse, whose scores are ordinary."""

    def ask(student, rng):
        module = make(student, rng)
        state = module.state_dict()
        for name, scale in (("W_query", 1 / size), ("W_key", size)):
            state |= {n: scale * each for n, each in state.items() if n.startswith(name)}
        module.load_state_dict(state)
        return module(rng.randn(N, D_IN))

    return ask


def second_call(make):
    """Return a case: the second of two calls of a module with as many tokens."""

    def ask(student, rng):
        module = make(student, rng)
        module(rng.randn(N, D_IN))
        return module(rng.randn(N, D_IN))

    return ask


LEVELS = torch.logspace(0.5, 4, 24, dtype=torch.float64).view(24, 1)
for version, about in ((V1, "values"), (V2, LINEAR)):
    v, module = version[-2:], made(version)
    formula(f"{v} for five tokens.", output(module, x), about=about)
    narrow, tokens = made(version, 7, 2), drawn(6, 7, times=0.5)
    formula(f"{v} with fewer output than input features.", output(narrow, tokens), about=about)
    square = output(made(version, 4, 4), drawn(4, 4))
    formula(f"{v} with tokens and features of one size.", square, about="square")
    wide = output(made(version, 5, 8), drawn(2, 5))
    formula(f"{v} for two tokens.", wide, about=about, hidden=True)

    for size in (1e-6, 1e6):
        ask = other_scale(module, size)
        formula(f"{v} with keys of about {size:g}.", ask, about=about, hidden=True)
    formula(f"A second call of {v}.", second_call(module), about=about)
    slopes(f"The gradients of {v} in training mode.", gradient(made(version, training=True), x))
    batch = gradient(made(version, 4, 5), drawn(2, 3, 4))
    slopes(f"The gradients of {v} for a batch.", batch, hidden=True)
    for sentence, target, shape in (
        ("One leading axis", module, (2, N, D_IN)),
        ("As many sentences as tokens and features", made(version, 4, 4), (4, 4, 4)),
        ("Two leading axes", module, (2, 3, 4, D_IN)),
    ):
        inputs(f"{sentence}, {v}.", output(target, drawn(*shape)))
    inputs(f"Other leading axes, {v}.", output(module, drawn(6, 2, 4, D_IN)), hidden=True)
    inputs(f"Three leading axes, {v}.", output(module, drawn(2, 1, 3, 4, D_IN)), hidden=True)
    for sentence, sizes, shape in (
        ("One token", (D_IN, 12), (1, D_IN)),
        ("One output feature", (D_IN, 1), (12, D_IN)),
        ("One feature of one token", (1, 1), (2, 1, 1)),
        ("One feature of several tokens", (1, 1), (4, 3, 1)),
        ("A batch of one sentence", (D_IN, D_OUT), (1, N, D_IN)),
        ("One sentence in two axes", (D_IN, D_OUT), (1, 1, N, D_IN)),
    ):
        ask = output(made(version, *sizes), drawn(*shape))
        inputs(f"{sentence}, {v}.", ask, about="single")
    for sentence, size in (("a hundred", 1e2), ("a thousand", 1e3)):
        ask = output(module, drawn(N, D_IN, times=size))
        inputs(f"Inputs of {sentence}, {v}.", ask, about="extreme scores")

    @test_any_input.case(f"too_large_{v}", about="extreme scores")
    def too_large(student, rng, module=module):
        """Which outputs are finite as the tokens of a sentence get larger."""
        tokens, call = rng.randn(24, D_IN) * LEVELS, module(student, rng)
        return torch.stack([call(tokens[i : i + 3]) for i in range(22)]).isfinite()

    inputs(f"x is a transposed view, {v}.", output(module, turned(x)), about="views")
    swapped = turned(drawn(2, N, D_IN), 0, 1)
    inputs(f"The first axes of a batch are swapped, {v}.", output(module, swapped), about="views")
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        ask = output(made(version, dtype=dtype), drawn(N, D_IN, dtype=dtype, times=0.5))
        inputs(f"{name}, {v}.", ask, about="dtype", within=(0.1, 0.1))
    inputs(
        f"A batch in bfloat16, {v}.",
        output(
            made(version, dtype=torch.bfloat16), drawn(2, N, D_IN, dtype=torch.bfloat16, times=0.5)
        ),
        about="dtype",
        within=(0.1, 0.1),
        hidden=True,
    )
    inputs(
        f"A large batch in training, {v}.",
        output(made(version, training=True), drawn(2, N, D_IN, times=1e3)),
        about="extreme scores",
        hidden=True,
    )
    inputs(
        f"Which numbers of a batch are others, {v}.",
        changed(module, drawn(2, N, D_IN)),
        about="writes",
        hidden=True,
    )
    inputs(f"Which numbers of x are others after {v}.", changed(module, x), about="writes")
    ask = torch.no_grad()(changed(module, x))
    inputs(f"Which are others after {v} without gradients.", ask, about="writes")


@test_any_input.case(about="views")
def swapped_axes_work(student, rng):
    """Whether a view of a batch works whose first axes are swapped."""
    tokens = rng.randn(N, 2, D_IN).transpose(0, 1)
    modules = [made(version)(student, rng) for version in (V1, V2)]
    return works_too(
        lambda: [each(tokens.contiguous()) for each in modules],
        lambda: [each(tokens) for each in modules],
    )


test_parts = Check(
    "V1 has three matrices, uniform in [0, 1); V2 three linear layers, with biases on request.",
    about="layers",
)
parts = test_parts.case
parts("The shapes of the parameters of V1.", parameters(V1, D_IN, D_OUT))
parts("The shapes of the parameters of V2.", parameters(V2, D_IN, D_OUT))
parts("The shapes with biases.", parameters(V2, 4, 5, qkv_bias=True), hidden=True)
parts("V2 with biases.", output(made(V2, D_IN, D_OUT, True), x), about="options")


WITH_BIASES = made(V2, D_IN, D_OUT, True)
slopes(
    "The gradients with biases, in training mode.",
    gradient(made(V2, D_IN, D_OUT, True, training=True), x),
    hidden=True,
)
inputs(
    "bfloat16 with biases.",
    output(made(V2, D_IN, D_OUT, True, dtype=torch.bfloat16), drawn(N, D_IN, dtype=torch.bfloat16)),
    about="dtype",
    within=(0.1, 0.1),
    hidden=True,
)
inputs(
    "A large view of one sentence, with biases.",
    output(WITH_BIASES, turned(drawn(1, N, D_IN, times=1e3))),
    about="views",
    hidden=True,
)
inputs(
    "Which numbers of x are others, with biases.",
    changed(WITH_BIASES, x),
    about="writes",
    hidden=True,
)


@parts
def sizes_with_biases(student, rng):
    """The sizes of the parameters of V2 with biases, each ten times; 0 for one that is missing."""
    found = parameter_shapes(made(V2, D_IN, D_OUT, True)(student, rng))
    wanted = [f"{name}.{part}" for name in NAMES for part in ("weight", "bias")]
    sizes = {name: often(math.prod(found.pop(name, [0]))) for name in wanted}
    return {**sizes, "others": sorted(found)}


@test_parts.case(about=START)
def start(student, rng):
    """Five times the quintiles of the numbers that V1 starts with, each three times."""
    with seeded(student, 11):
        module = student.SelfAttentionV1(50, 40)
    places = torch.linspace(0, 1, 6).repeat(3)
    found = {name: each.detach().float().flatten() for name, each in module.named_parameters()}
    return {n: (each.quantile(places) * 5).round().clamp(-2, 7) for n, each in found.items()}


@test_parts.case(tells=False, hidden=True)
def uniform(student, rng):
    """V1 starts with numbers that are uniform in [0, 1), others in each matrix and module."""
    modules = [student.SelfAttentionV1(50, 40) for _ in range(2)]
    numbers = [p.detach().double().flatten() for m in modules for _, p in m.named_parameters()]
    tenths = torch.linspace(0, 1, 11, dtype=torch.float64)
    for values in numbers:
        # The margin is seven times what the share of 2,000 numbers below a tenth varies by.
        shares = (values < tenths.view(-1, 1)).double().mean(1)
        is_even = shares[0] == 0 and values.max() <= 1 and (shares - tenths).abs().max() < 0.08
        expect(is_even, "V1 does not start uniform in [0, 1)")
    together = torch.corrcoef(torch.stack(numbers)).fill_diagonal_(0).abs().max()
    expect(together < 0.5, "some of the matrices of V1 start with the same numbers")


def matrices(module):
    """Return the parameters by name."""
    return {name: value.detach() for name, value in module.named_parameters()}


@test_parts.case(about=START)
def start_of_a_pair(student, rng):
    """Which numbers of a second V1 are those of the first, and of W_key those of W_query."""
    with seeded(student, 12):
        one, other = [matrices(student.SelfAttentionV1(4, 5)) for _ in range(2)]
    pairs = [(one[name], other[name]) for name in NAMES if name in one]
    pairs += [(one["W_query"], one["W_key"])] if len(pairs) == 3 else []
    return [left == right for left, right in pairs]


def pair(student, rng, *sizes, frozen=False):
    """Return a V2 and a V1 after a copy of the weights of the first to the second."""
    source, target = made(V2, *sizes)(student, rng), made(V1, *sizes)(student, rng)
    if frozen:
        source.requires_grad_(False)
    student.copy_weights(source, target)
    return source, target


test_copy = Check(
    "After copy_weights, V1 has the weights of V2, and gives the same outputs.",
    points=2,
    about=COPY,
)


def copied(*sizes):
    """Return a case: the matrices of both after a copy."""
    return lambda student, rng: [matrices(each) for each in pair(student, rng, *sizes)]


for sizes in ((D_IN, D_OUT), (4, 4), (3, 1), (1, 5)):
    test_copy.case("The matrices of both for {} and {} features.".format(*sizes), copied(*sizes))
test_copy.case("The matrices of both for other sizes.", copied(7, 4), hidden=True)


@test_copy.case
def same_outputs(student, rng):
    """Which outputs of both are the same after the copy."""
    source, target = pair(student, rng)
    tokens = rng.randn(N, D_IN)
    return (target(tokens) - source(tokens)).abs() < 1e-6


test_copy_is_separate = Check(
    "After the copy, neither module changes the other, V1 can be trained; biases are refused.",
    about=SEPARATE,
)
separate = test_copy_is_separate.case


def later_change(changing, other, d_out):
    """Return a case: which outputs of one module change when the other one changes."""

    def ask(student, rng):
        modules = dict(zip((V2, V1), pair(student, rng, D_IN, d_out)))
        tokens = rng.randn(12, D_IN)
        before = modules[other](tokens).detach()
        state = modules[changing].state_dict()
        new = {name: rng.randn(*value.shape) for name, value in state.items()}
        modules[changing].load_state_dict(new)
        return modules[other](tokens).detach() != before

    return ask


separate("V1 after V2 has changed.", later_change(V2, V1, D_OUT))
separate("V1 of one feature after V2 has changed.", later_change(V2, V1, 1))
separate("V2 after V1 has changed.", later_change(V1, V2, D_OUT), tells=False, hidden=True)


@separate
def source_as_before(student, rng):
    """Which outputs of V2 change with the copy."""
    source, target, tokens = made(V2)(student, rng), made(V1)(student, rng), rng.randn(N, D_IN)
    target.load_state_dict({name: rng.randn(D_IN, D_OUT) for name in NAMES}, strict=False)
    before = source(tokens).detach()
    student.copy_weights(source, target)
    return source(tokens).detach() != before


@separate
def trained_copy(student, rng):
    """Which weights of V1 and V2 get gradients from a loss of V1 after the copy."""
    source, target = pair(student, rng)
    target.zero_grad()
    source.zero_grad()
    target(rng.randn(N, D_IN)).square().sum().backward()
    found = [(n, p.grad) for module in (target, source) for n, p in module.named_parameters()]
    return {name: each != 0 if each is not None else often(False) for name, each in found}


def learns(frozen):
    """Return a case: which parameters of V2, which may be frozen, and V1 need gradients."""

    def ask(student, rng):
        return [
            {name: often(each.requires_grad) for name, each in module.named_parameters()}
            for module in pair(student, rng, frozen=frozen)
        ]

    return ask


separate("What can be trained after the copy.", learns(frozen=False))
separate("What can be trained after the copy of a V2 that is frozen.", learns(frozen=True))


def copy_of_biases(number):
    """Return a case: a copy from a source whose biases are all one number."""

    def ask(student, rng):
        source = made(V2, D_IN, D_OUT, True)(student, rng)
        state = {f"{name}.bias": number * torch.ones(D_OUT) for name in NAMES}
        source.load_state_dict(state, strict=False)
        student.copy_weights(source, made(V1)(student, rng))
        return ACCEPTED

    return ask


separate("A copy of biases.", copy_of_biases(1.0), about="refusals")
separate("A copy of biases that are 0.", copy_of_biases(0.0), about="refusals")


test_no_python_loops = Check("No Python loop runs over leading axes or tokens.")


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of tokens or sentences."""
    for version, *bias in ((V1,), (V2,), (V2, True)):

        def called(leading=(), n_tokens=3, version=version, bias=bias):
            tokens = rng.randn(*leading, n_tokens, D_IN).float()
            return lambda: output_of(getattr(student, version)(D_IN, D_OUT, *bias), tokens)

        grown = {"tokens": {"n_tokens": (14, 31)}, "sentences": {"leading": ((6,), (13,))}}
        assert_vectorised(student, called, grown)


for version in (V1, V2):
    larger = output(made(version), drawn(6, 31, D_IN))
    test_no_python_loops.case(f"Six sentences of 31 tokens, {version}.", larger, hidden=True)
