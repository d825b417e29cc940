"""The checks of RMS norm and their cases."""

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
    moved,
    only_dtype,
    output,
    output_of,
    parameters,
    turned,
    without_gradients,
    works_as_well,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
B, N, D = 2, 5, 6  # batch items, tokens, features
NORM = "RMSNorm"
HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def norm(*sizes, **options):
    """Return what makes a norm whose gamma is random."""
    return built(NORM, *sizes, layers=("gamma",), **options)


layer = norm(D, 0.1)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The norm is written by hand, without a torch function that does all of it."""
    x = rng.randn(B, N, D, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.RMSNorm(D), x))


test_gamma = Check("gamma is the only parameter, (d_model,), and initially ones.", about="layers")
test_gamma.case("The shape of the parameter.", parameters(NORM, 12))
test_gamma.case("The shape for other sizes.", parameters(NORM, 11, 0.5), hidden=True)


@test_gamma.case
def initial_values(student, rng):
    """What a new layer saves."""
    return dict(student.RMSNorm(12).state_dict())


@test_gamma.case
def new_layer(student, rng):
    """The output of a new layer."""
    return student.RMSNorm(D, 0.1).to(torch.float64)(rng.randn(B, N, D))


test_formula = Check(
    "Each token is divided by the root mean square of its own features, and scaled by gamma.",
    points=2,
)
values = test_formula.case
values("Three axes and an eps that shows.", output(layer, drawn(B, N, D, times=0.3)))
values("All sizes equal.", output(norm(4, 0.1), drawn(4, 4, 4, times=0.3)), about="square")
values("Two axes.", output(norm(7, 0.5), drawn(4, 7)), about="leading axes")
values("Four axes.", output(layer, drawn(2, 3, 4, D)), about="leading axes")
values("Features around 50.", output(norm(7), lambda rng: rng.randn(3, 4, 7) + 50))
values("Features of a million.", output(norm(7), drawn(3, 4, 7, times=1e6)), hidden=True)
values("Two axes of a million.", output(norm(7), drawn(4, 7, times=1e6)), hidden=True)
values("Five axes.", output(layer, drawn(2, 1, 3, 4, D)), about="leading axes", hidden=True)
values("Training mode.", output(norm(D, 0.1, training=True), drawn(B, N, D)), about="training")
values("Training mode, two axes.", output(norm(D, training=True), drawn(N, D)), hidden=True)
values("One token.", output(norm(12, 0.1), drawn(1, 1, 12)), about="single")
values("One feature.", output(norm(1, 0.1), drawn(3, 5, 1)), about="single")
for shape in ((3, 1, 7), (1, 5, 7), (1, 7)):  # one token or sentence, or a single vector
    ask = output(norm(7, 0.1), drawn(*shape))
    values(f"An x of shape {shape}.", ask, about="single", hidden=True)


test_eps = Check("The layer adds the eps it was given to the mean square; by default, 1e-5.")
for eps, size in ((1.0, 1.0), (1e-6, 1e-3), (0.0, 1e-3)):
    test_eps.case(
        f"An eps of {eps:g} for features of about {size:g}.",
        output(norm(D, eps), drawn(B, N, D, times=size)),
    )
test_eps.case("The default eps.", output(norm(D), drawn(B, N, D, times=3e-3)), about="options")
test_eps.case("An eps of 3 for many features.", output(norm(40, 3.0), drawn(2, 4, 40)), hidden=True)


test_gradients = Check(
    "Gradients reach x and gamma; a token of zeros gives zeros and finite gradients.",
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of x and gamma.", gradient(layer, drawn(B, N, D)))
slopes("The gradients with two axes.", gradient(layer, drawn(4, D)), hidden=True)
zeros = torch.zeros(B, N, D, dtype=torch.float64)
slopes("Zeros.", output(norm(D), zeros), about="length 0")
slopes("The gradients for zeros.", gradient(norm(D), zeros), about="length 0")
slopes(
    "One token of zeros among others.",
    gradient(norm(D), lambda rng: rng.randn(3, D) * torch.tensor([[1.0], [0.0], [1.0]])),
    about="length 0",
    hidden=True,
)


test_any_input = Check(
    "Half precision loses no squares, the output has the dtype of x, and x may be any view.",
    about="dtype",
)
inputs = test_any_input.case
for name, dtype in HALF.items():
    low, made = drawn(B, N, D, dtype=dtype), norm(D, 0.1, dtype=dtype)
    inputs(f"A layer and an x in {name}.", output(made, low), within=(0.02, 0.02))
    mixed = only_dtype(norm(D, dtype=torch.float32), low)
    inputs(f"The dtype of the output for x in {name} and gamma in float32.", mixed)
    inputs(
        f"Two axes of hundreds in {name}.",
        output(norm(7, dtype=dtype), drawn(4, 7, dtype=dtype, times=300.0)),
        within=(0.02, 0.02),
        hidden=True,
    )
    inputs(
        f"The gradients in {name}.",
        gradient(made, low),
        within=(0.05, 0.05),
        hidden=True,
    )
    inputs(
        f"The gradients of two axes in {name}.",
        gradient(made, drawn(4, D, dtype=dtype)),
        within=(0.05, 0.05),
        hidden=True,
    )
inputs("x in float32.", output(norm(D, dtype=torch.float32), drawn(B, N, D, dtype=torch.float32)))
inputs(
    "Features of some hundreds in float16.",
    output(norm(D, dtype=torch.float16), drawn(B, N, D, dtype=torch.float16, times=400.0)),
    about="extreme scores",
    within=(0.02, 0.02),
)
inputs("A move.", moved(NORM, D, x=drawn(B, N, D, dtype=torch.float32)), about="devices")
inputs(
    "A move, for two axes.",
    moved(NORM, 7, x=drawn(N, 7, dtype=torch.float32)),
    about="devices",
    hidden=True,
)
inputs("A view of x.", output(layer, turned(drawn(B, N, D), 0, 2)), about="views")
inputs(
    "Whether a view works.",
    works_as_well(layer, drawn(B, N, D), turned(drawn(B, N, D), 0, 1)),
    about="views",
)
inputs("Two axes, swapped.", output(layer, turned(drawn(N, D))), about="views", hidden=True)
three, two = changed(layer, drawn(B, N, D)), changed(layer, drawn(N, D))
says = "Which numbers of x are others after a call"
inputs(f"{says}.", three, about="writes")
inputs(f"{says} without gradients.", without_gradients(three), about="writes")
inputs("Which of two axes.", two, about="writes", hidden=True)
inputs("Two axes, no gradients.", without_gradients(two), about="writes", hidden=True)


@inputs(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences, tokens or features."""

    def called(batch=2, n_tokens=3, d_model=D):
        x, gamma = rng.randn(batch, n_tokens, d_model), rng.randn(d_model)
        module = load_parameters(student.RMSNorm(d_model), {"gamma": gamma})
        return lambda: [output_of(module, each) for each in (x, x[0], x[:, None])]

    grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
    assert_vectorised(student, called, grown | {"features": {"d_model": (110, 222)}})
