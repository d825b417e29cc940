"""The checks of AdamW, of its learning rates and of the clipping of gradients, and their cases."""

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_vectorised,
    assert_written_by_hand,
    often,
    works_too,
    written,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("step", "number")
DECAY = Aspect("decay", "the values with weight decay")
GROUPS = Aspect("groups", "parameters with other options")
NONE = Aspect("none", "parameters without a gradient")
RESUMED = Aspect("resumed", "the values after a break")
RATES = Aspect("rates", "what `learning_rate` returns")
CLIPPED = Aspect("clipped", "the gradients after `clip_gradients`")
ZEROS = Aspect("zeros", "gradients of 0", is_edge=True)
SHAPES = (3, 4), (5,), (2, 1, 2)  # of three parameters


def drawn(rng, n_steps, *shapes, times=1.0, dtype=torch.float64):
    """Return parameters of these shapes, and gradients for each step."""
    some = [rng.randn(*shape).to(dtype) for shape in shapes]
    return some, [[(rng.randn(*s) * times).to(dtype) for s in shapes] for _ in range(n_steps)]


def joined(history):
    """Return a row of all numbers for each step."""
    return torch.stack([torch.cat([each.flatten() for each in params]) for params in history])


def run(student, params, gradients, state=None, **options):
    """Return the parameters after each step, as rows of numbers, and the state."""
    history, state = student.run_steps([{"params": params}], gradients, state, **options)
    return joined(history), state


def stepped(*shapes, n_steps=4, times=1.0, lr=0.1, **options):
    """Return a case: all parameters after each step."""
    return lambda student, rng: run(
        student, *drawn(rng, n_steps, *shapes, times=times), lr=lr, **options
    )[0]


def resumed(change=None, **options):
    """Return a case: the parameters after three steps, a break or a change, and three more."""

    def ask(student, rng):
        params, gradients = drawn(rng, 6, *SHAPES)
        before, state = student.run_steps([{"params": params}], gradients[:3], **options)
        if change:
            state["param_groups"][0].update(change)
        return run(student, before[-1], gradients[3:], state, **options)[0]

    return ask


def rates(peak, warmup, total, *floor):
    """Return a case: the rates of all steps."""
    return lambda student, rng: [
        student.learning_rate(step, peak, warmup, total, *floor) for step in range(1, total + 1)
    ]


def clipping(*shapes, max_norm=1.0, times=1.0, none=(), shown=1.0):
    """Return a case: `shown` times the gradients after `clip_gradients`, some of them None."""

    def ask(student, rng):
        gradients = [rng.randn(*shape) * times for shape in shapes]
        gradients = [None if n in none else each for n, each in enumerate(gradients)]
        clipped = student.clipped(gradients, max_norm)[0]
        return clipped if shown == 1.0 else [each * shown for each in clipped]

    return ask


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The steps, rates and norms are written by hand, without torch's own."""
    params, gradients = drawn(rng, 2, (3, 4), (5,))
    assert_written_by_hand(
        student,
        lambda: student.run_steps([{"params": params}], gradients),
        lambda: student.learning_rate(3, 1.0, 2, 9),
        lambda: student.clipped(gradients[0], 0.5),
    )


test_steps = Check("Each step moves the parameters by the ratio of the corrected means.", points=4)
values = test_steps.case
values("Four steps without decay.", stepped(*SHAPES, weight_decay=0.0))
values("Twelve steps of one parameter.", stepped((3,), n_steps=12, weight_decay=0.0))
values("The first step.", stepped((4, 5), n_steps=1, weight_decay=0.0), about="single")
values("Other betas.", stepped(*SHAPES, betas=(0.6, 0.8), weight_decay=0.0), about="options")
values("An eps of 0.3.", stepped(*SHAPES, eps=0.3, weight_decay=0.0), about="options")
values("An eps of 0.05 and betas of 0.", stepped((6,), eps=0.05, betas=(0.0, 0.0)), hidden=True)
values("A single number.", stepped((), n_steps=12, weight_decay=0.0), hidden=True)
values("Gradients of a million.", stepped(*SHAPES, times=1e6), about="extreme scores")
values("Gradients of a millionth.", stepped(*SHAPES, times=1e-6), about="extreme scores")


@values(about="options")
def defaults(student, rng):
    """A thousand times the parameters of 0 and of 1,000 after 12 steps with the default options."""
    params, gradients = drawn(rng, 12, (4,), (4,))
    params = [params[0] * 0, params[1] * 0 + 1000]
    return (run(student, params, gradients)[0] - joined([params])) * 1000


test_decay = Check(
    "Parameters shrink by lr * weight_decay of themselves, apart from the means.",
    points=3,
    about=DECAY,
)
decay = test_decay.case
decay("A weight_decay of 0.5.", stepped(*SHAPES, weight_decay=0.5))
decay("A weight_decay of 2, and an eps of 0.2.", stepped(*SHAPES, weight_decay=2.0, eps=0.2))
decay("The first step with decay.", stepped((4, 5), n_steps=1, weight_decay=3.0))
decay("A weight_decay of 0.8.", stepped((7,), (1, 3), n_steps=6, weight_decay=0.8), hidden=True)
decay("Steps with gradients of 0.", stepped(*SHAPES, times=0.0, weight_decay=0.5), about=ZEROS)


@decay(about=ZEROS)
def finite(student, rng):
    """Which parameters are finite after steps with gradients of 0."""
    return run(student, *drawn(rng, 4, *SHAPES, times=0.0), lr=0.1)[0].isfinite()


test_groups = Check("Each group has options of its own, which may change.", points=2, about=GROUPS)


def of_groups(*groups, **options):
    """Return a case: the parameters of several groups after each step."""

    def ask(student, rng):
        params, gradients = drawn(rng, 4, *SHAPES)
        given = [{"params": params[n : n + 1], **group} for n, group in enumerate(groups)]
        return joined(student.run_steps(given, gradients, **options)[0])

    return ask


DECAYS = {"weight_decay": 0.0}, {"weight_decay": 0.9}, {}
test_groups.case("Decay in one of three groups.", of_groups(*DECAYS, lr=0.1))
test_groups.case("Other rates in groups.", of_groups({"lr": 0.3}, {"lr": 0.01}, {}, lr=0.1))
others = of_groups({"betas": (0.5, 0.9)}, {"eps": 0.1}, {"lr": 0.2}, lr=0.1)
test_groups.case("Other betas and eps in groups.", others, hidden=True)
test_groups.case("A rate that changes.", resumed({"lr": 0.4}, lr=0.1))


test_no_gradient = Check(
    "A parameter without a gradient stays as it is, with its t, and has no part in the norm.",
    points=2,
    about=NONE,
)


def without(*missing, **options):
    """Return a case: the parameters where (step, parameter) have no gradient."""

    def ask(student, rng):
        params, gradients = drawn(rng, 5, *SHAPES)
        for step, n in missing:
            gradients[step][n] = None
        return run(student, params, gradients, lr=0.1, weight_decay=0.5, **options)[0]

    return ask


test_no_gradient.case("A parameter that begins late.", without((0, 0), (1, 0), (2, 0)))
test_no_gradient.case("A parameter that pauses.", without((2, 1), (3, 1)))
test_no_gradient.case("A parameter that never learns.", without(*((n, 2) for n in range(5))))
paused = without((0, 1), (0, 2), (4, 0), betas=(0.5, 0.7))
test_no_gradient.case("Several that pause.", paused, hidden=True)


@test_no_gradient.case
def nothing(student, rng):
    """The norm where no parameter has a gradient."""
    return often(student.clipped([None, None], 1.0)[1])


@test_no_gradient.case
def nothing_works(student, rng):
    """Whether a parameter may lack a gradient in `step` and `clip_gradients`."""
    params, gradients = drawn(rng, 2, *SHAPES)
    some = [[None, *each[1:]] for each in gradients]
    return [
        works_too(
            lambda: student.clipped(gradients[0], 1.0), lambda: student.clipped(some[0], 1.0)
        ),
        works_too(lambda: run(student, params, gradients), lambda: run(student, params, some)),
    ]


test_resumed = Check(
    "An optimizer that loads a state goes on as if never stopped.", points=2, about=RESUMED
)
test_resumed.case("Three steps after a break.", resumed(lr=0.1))
test_resumed.case("A break with other betas.", resumed(lr=0.1, betas=(0.5, 0.9)), hidden=True)


test_rates = Check(
    "The rates rise to peak in a line, and fall to floor in half a cosine.", points=3, about=RATES
)
test_rates.case("The rates of the example.", rates(1.0, 4, 12, 0.1))
test_rates.case("Another peak.", rates(3.0, 5, 18, 0.5))
test_rates.case("The default floor.", rates(2.0, 3, 14))
test_rates.case("Without warm-up.", rates(2.0, 0, 13, 0.4))
test_rates.case("A long warm-up.", rates(0.7, 17, 20, 0.2), hidden=True)
test_rates.case("A warm-up of one step.", rates(5.0, 1, 15, 1.0), hidden=True)


test_clip = Check(
    "Gradients whose common norm is above max_norm are scaled down to it.", points=3, about=CLIPPED
)
clip = test_clip.case
clip("Three gradients that are too long.", clipping(*SHAPES))
clip("Gradients of a hundred.", clipping(*SHAPES, times=100.0, max_norm=2.5))
clip("One gradient.", clipping((3, 4), max_norm=0.5))
clip(
    "A million times the clipped gradients of a millionth.",
    clipping(*SHAPES, times=1e-6, max_norm=1e-6, shown=1e6),
)
clip("Gradients that are short enough.", clipping(*SHAPES, max_norm=50.0))
clip("One of four is missing.", clipping((4,), *SHAPES, none=(0,)), about=NONE)
clip("Another max_norm.", clipping((6, 2), (3,), max_norm=1.7, times=4.0), hidden=True)
clip("Clipped gradients of 0.", clipping(*SHAPES, times=0.0), about=ZEROS)


@clip
def norms(student, rng):
    """The norms that are returned, of gradients that are too long and of others."""
    some = [[rng.randn(*shape) * n for shape in SHAPES] for n in range(1, 13)]
    return [student.clipped(gradients, 9.0)[1] for gradients in some]


test_tensors = Check(
    "Dtypes are kept, `step` leaves gradients alone, and no Python loop runs over numbers.",
    points=2,
    about="writes",
)
tensors = test_tensors.case


@tensors
def gradients_afterwards(student, rng):
    """Which numbers of the gradients are others after two steps."""
    params, gradients = drawn(rng, 2, (4, 5), (5,))
    given = [each for step in gradients for each in step]
    before = [each.clone() for each in given]

    def call(*each):
        return run(student, params, [each[:2], each[2:]], lr=0.1, weight_decay=0.5)

    return [one != other for one, other in zip(written(student, call, *given), before)]


for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):

    def in_dtype(student, rng, dtype=dtype):
        params, gradients = drawn(rng, 3, *SHAPES, dtype=dtype)
        return student.run_steps([{"params": params}], gradients, lr=0.1, weight_decay=0.5)[0]

    tensors(f"Parameters in {name}.", in_dtype, about="dtype", within=(0.05, 0.05))


@tensors(about="views")
def turned_parameters(student, rng):
    """Parameters and gradients that are transposed views."""
    params, gradients = drawn(rng, 3, (4, 5), (3, 2))
    turned = [[each.mT for each in step] for step in gradients]
    return run(student, [each.mT for each in params], turned, lr=0.1)[0]


@tensors(tells=False, hidden=True)
def growth(student, rng):
    """The work of a step and of a clipping does not grow with the size of a parameter."""

    def called(rows=3, columns=4):
        params, gradients = drawn(rng, 2, (rows, columns), (columns,))
        return lambda: (run(student, params, gradients), student.clipped(gradients[0], 0.1))

    assert_vectorised(
        student, called, {"rows": {"rows": (41, 83)}, "columns": {"columns": (37, 79)}}
    )


@tensors(hidden=True)
def one_column(student, rng):
    """Parameters of one number and of one column."""
    return run(student, *drawn(rng, 3, (1,), (6, 1), (1, 5)), lr=0.1, weight_decay=0.5)[0]
