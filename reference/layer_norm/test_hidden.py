"""The checks of layer norm and their cases."""

import contextlib
import functools

import pytest
import torch

from grader.authors import (
    Check,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    gradient,
    load_parameters,
    often,
    only_dtype,
    output,
    output_of,
    parameters,
    turned,
    works_too,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
B, N, D = 2, 5, 6  # batch items, tokens, features
NORM = "LayerNorm"
PARTS = ("gamma", "beta")


def norm(*sizes, **options):
    """Return what makes a norm whose two parameters are random."""
    return built(NORM, *sizes, layers=PARTS, **options)


layer = norm(D, 0.1)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The norm is written by hand, without a torch function that does all of it."""
    x = rng.randn(B, N, D, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.LayerNorm(D), x))


test_fresh_layer = Check(
    "gamma is initially ones and beta zeros: two parameters of shape (d_model,), no others.",
    about="layers",
)
test_fresh_layer.case("The shapes of what is trained.", parameters(NORM, D))
test_fresh_layer.case("Two other shapes.", parameters(NORM, 11, 0.5), hidden=True)


@test_fresh_layer.case
def initial_values(student, rng):
    """What a new layer saves."""
    # Leaves numbers in the memory that parameters get which are never filled.
    with contextlib.suppress(Exception):  # other checks report what is wrong
        output_of(student.LayerNorm(D), torch.arange(1.0, D + 1).view(1, 1, -1))
    return dict(student.LayerNorm(D).state_dict())


test_formula = Check(
    "Each token is normalised over its own features, in any mode and for any leading axes.",
    points=2,
)
values = test_formula.case
values(
    "Three axes and an eps that shows.", output(layer, lambda rng: drawn(B, N, D)(rng) * 0.3 + 1)
)
values(
    "Two axes, of features around 50, in hundreds.",
    output(norm(7), lambda rng: rng.randn(4, 7) * 100 + 50),
    hidden=True,
)
values("Two axes.", output(norm(7, eps=0.5), lambda rng: rng.randn(4, 7) + 1))
values(
    "Features around 50, in hundreds.",
    output(norm(7), lambda rng: rng.randn(3, 4, 7) * 100 + 50),
    hidden=True,
)
values("All sizes equal.", output(norm(4, 0.1), drawn(4, 4, 4, times=0.3)), about="square")
values("Four axes.", output(layer, drawn(2, 3, 4, D)), about="leading axes")
values("Five axes.", output(layer, drawn(2, 1, 3, 4, D)), about="leading axes", hidden=True)
values("Training mode.", output(norm(D, 0.1, training=True), drawn(B, N, D)), about="training")


@test_formula.case(about="layers")
def new_layer(student, rng):
    """The output of a new layer."""
    return student.LayerNorm(D, 0.1).to(torch.float64)(rng.randn(B, N, D))


values("One token.", output(norm(12, 0.1), drawn(1, 1, 12)), about="single")
for shape in ((3, 1, 7), (1, 5, 7), (1, 7)):  # one token or sentence, or a single vector
    ask = output(norm(7, 0.1), drawn(*shape))
    values(f"An x of shape {shape}.", ask, about="single", hidden=True)


test_eps = Check("eps is inside the square root; it is the one given, or else 1e-5.")
for eps, size in ((0.0, 1e-3), (1.0, 1.0), (1e-10, 1e-5), (1e-12, 1e-6)):
    test_eps.case(
        f"An eps of {eps:g} for features of about {size:g}.",
        output(norm(D, eps), drawn(B, N, D, times=size)),
        about="values" if size > 1e-4 else "options",
    )
test_eps.case("An eps of 3 for many features.", output(norm(40, 3.0), drawn(2, 4, 40)), hidden=True)
test_eps.case(
    "The default eps and features of a hundredth.",
    output(norm(D), drawn(B, N, D, times=0.01)),
)
test_eps.case(
    "The default eps and features of 3 thousandths.",
    output(norm(7), drawn(B, 4, 7, times=3e-3)),
    hidden=True,
)


test_any_features = Check(
    "Features around a million lose no accuracy; equal ones give beta, and a finite gradient.",
    about="extreme scores",
)
features = test_any_features.case


def whole(rng):
    """Return whole numbers as float32: whoever subtracts the mean first loses none of them."""
    drawn_ones = rng.randint(-6, 7, B, 3, 6)
    return torch.cat([drawn_ones, torch.tensor([-5, 4]).expand(B, 3, 2)], -1).float()


def differs(outputs, others):
    """Return where outputs differ, be it by nan."""
    return ~((outputs - others).abs() <= 1e-3)


@features
def around_a_million(student, rng):
    """Whether tokens around a million, minus a million and 0 in float32 differ from those at 0."""
    module, sides = student.LayerNorm(8).eval(), 2.0**20 * torch.tensor([[1.0], [-1.0], [0.0]])
    x = whole(rng)
    differ = differs(module(x + sides), module(x))  # (batch, n_tokens, features)
    return often(*differ.any(-1).any(0).tolist())


@features(hidden=True)
def all_around_a_million(student, rng):
    """Whether tokens that are all around a million in float32 differ from those at 0."""
    module, x = student.LayerNorm(8).eval(), whole(rng)
    return often(bool(differs(module(x + 2.0**20), module(x)).any()))


@features(decides=False)
def far_from_zero(student, rng):
    """Whether features around 2^26, whose squares have too many digits, give other outputs."""
    module = norm(8, 0.1)(student, rng)
    x = rng.randint(-9, 10, B, N, 8).double()
    return often(bool(differs(module(2.0**26 + x), module(x)).any()))


def halves(rng):
    """Return tokens with equal features, whose mean is exact."""
    return (rng.randint(-9, 10, B, N, 1) / 2.0).double().repeat(1, 1, D)


features("Features that are all equal.", output(norm(D), halves))
features("The gradients where features are all equal.", gradient(norm(D), halves))
features("Tokens of one feature.", output(norm(1, 0.1), drawn(2, 6, 1)), about="single")
features("Zeros.", output(norm(3), torch.zeros(4, 3, dtype=torch.float64)), hidden=True)


test_gradients = Check(
    "Gradients reach x, gamma and beta, and are the slopes of the output.", about="gradient"
)
slopes = test_gradients.case
slopes("The gradients of the input and of the parameters.", gradient(layer, drawn(B, N, D)))
slopes(
    "The gradients in training mode, of two axes.",
    gradient(norm(9, 0.5, training=True), drawn(3, 9)),
    hidden=True,
)


test_any_input = Check(
    "x may be any view, and is not modified; `layer.to(dtype)` is enough to change the dtype.",
    about="views",
)
views = test_any_input.case
dtypes = functools.partial(test_any_input.case, about="dtype")
views("x is a transposed view.", output(layer, turned(drawn(B, N, D), 0, 2)))
views("Two axes that are swapped.", output(layer, turned(drawn(N, D))), hidden=True)
views(
    "Which numbers of four axes are others after a call.",
    changed(layer, drawn(2, 3, 4, D)),
    about="writes",
    hidden=True,
)
views("Other axes of x are swapped.", output(layer, turned(drawn(3, 4, D))), hidden=True)


@views
def transposed_works(student, rng):
    """Whether a transposed x works."""
    module, x = norm(D, 0.1)(student, rng), rng.randn(D, N, B).transpose(0, 2)
    return works_too(lambda: module(x.contiguous()), lambda: module(x))


views("Which numbers of x are others after a call.", changed(layer, drawn(B, N, D)), about="writes")
views(
    "Which numbers of x are others after a call without gradients.",
    torch.no_grad()(changed(layer, drawn(B, N, D))),
    about="writes",
)
new = only_dtype(lambda student, rng: student.LayerNorm(D), drawn(B, N, D, dtype=torch.float32))
dtypes("The dtype that a new layer makes of x in float32.", new)
low = torch.bfloat16
dtypes(
    "Two axes in bfloat16.",
    output(norm(D, 0.1, dtype=low), drawn(N, D, dtype=low)),
    within=(0.1, 0.1),
    hidden=True,
)
for name, dtype, within in (
    ("float32", torch.float32, (1e-3, 1e-4)),
    ("bfloat16", torch.bfloat16, (0.1, 0.1)),
):
    x, training = drawn(B, N, D, dtype=dtype), norm(D, 0.1, dtype=dtype, training=True)
    dtypes(f"x in {name}.", output(norm(D, 0.1, dtype=dtype), x), within=within)
    dtypes(f"{name} in training.", output(training, x), within=within, hidden=True)


test_no_python_loops = Check("No Python loop runs over batch, tokens or features.")


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences, tokens or features."""

    def called(batch=2, n_tokens=3, d_model=D):
        x, gamma, beta = rng.randn(batch, n_tokens, d_model), rng.randn(d_model), rng.randn(d_model)
        module = load_parameters(student.LayerNorm(d_model), {"gamma": gamma, "beta": beta})
        return lambda: [output_of(module, each) for each in (x, x[0], x[:, None])]

    grown = {
        "sentences": {"batch": (105, 211)},
        "tokens": {"n_tokens": (108, 217)},
        "features": {"d_model": (110, 222)},
    }
    assert_vectorised(student, called, grown)


for shape in ((105, 3, D), (2, 108, D), (2, 3, 222)):
    test_no_python_loops.case(
        f"x of shape {shape}.", output(norm(shape[-1]), drawn(*shape)), hidden=True
    )
