"""The checks of cross-entropy and their cases.

One loss is a single number, and a mistake is named only if ten numbers of an answer show it. So
most cases ask for the losses of a dozen batches.
"""

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_vectorised,
    assert_written_by_hand,
    changed,
    drawn,
    gradients,
    output,
    refused,
    turned,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("class",)
LEFT_OUT = Aspect("left out", "batches with ignored positions")
NOTHING = Aspect("nothing", "batches in which no position counts", is_edge=True)
LOSS = "log_loss"
N_CLASSES = 5
IGNORED = -100
TARGETS = torch.tensor([[2, 0, 4], [1, 3, 3]])
WITH_IGNORED = torch.tensor([[2, IGNORED, 4], [1, IGNORED, 3]])


def batches(rng, *shape, index=None):
    """Return a dozen batches of logits of a shape, and a right class for each position.

    With an index, every third target is that one, from the second on.
    """
    for _ in range(12):
        logits, targets = rng.randn(*shape), rng.randint(0, shape[-1], *shape[:-1])
        places = torch.arange(targets.numel()).view(targets.shape)
        if index is not None:
            targets = targets.masked_fill(places % 3 == 1, index)
        yield logits, targets


def losses(*shape, index=None, times=1.0):
    """Return a case: the losses of a dozen batches."""
    given = () if index in (None, IGNORED) else (index,)
    return lambda student, rng: [
        student.log_loss(logits * times, targets, *given)
        for logits, targets in batches(rng, *shape, index=index)
    ]


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The loss is written by hand, without a torch function that does all of it."""
    logits = rng.randn(2, 3, N_CLASSES)
    assert_written_by_hand(student, lambda: student.log_loss(logits, TARGETS))


test_every_position_counts = Check(
    "Without ignored positions, the loss is the mean over all of them, with any leading axes.",
    points=3,
)
values = test_every_position_counts.case
values("Several sentences, and every position counts.", losses(2, 3, 5))
values("A row of positions.", losses(4, 7))
values("As many sentences as tokens and classes.", losses(3, 3, 3), about="square")
values("Three leading axes.", losses(2, 3, 4, 5), about="leading axes")
values("More positions than classes.", losses(7, 4), hidden=True)
values("One position.", losses(1, 6), about="single")
values("One position in one sentence.", losses(1, 1, 3), about="single", hidden=True)


test_no_leading_axis = Check(
    "A single position without leading axes has a loss too.", about="leading axes"
)
test_no_leading_axis.case("A single position without leading axes.", losses(6))
test_no_leading_axis.case("A single position of three classes.", losses(3), hidden=True)


test_ignored_positions = Check(
    "Ignored positions count neither in the sum nor in the mean, whatever their logits are.",
    points=2,
    about=LEFT_OUT,
)
ignored = test_ignored_positions.case
ignored("Every third position is ignored.", losses(2, 5, 4, index=IGNORED))
ignored("Ignored positions in a row.", losses(4, 5, index=IGNORED), hidden=True)
ignored("Three sentences with ignored positions.", losses(3, 4, 3, index=IGNORED), hidden=True)


@ignored
def far_logits(student, rng):
    """The logits of ignored positions are 50."""
    return [
        student.log_loss(logits.masked_fill((targets == IGNORED)[..., None], 50.0), targets)
        for logits, targets in batches(rng, 3, 4, 5, index=IGNORED)
    ]


test_any_ignore_index = Check(
    "ignore_index may be any int: -1, that of a class, or a large one.", about=LEFT_OUT
)
any_index = test_any_ignore_index.case
any_index("The ignore_index is -1.", losses(2, 5, 4, index=-1))
any_index("The ignore_index is that of a class.", losses(2, 5, 4, index=1))
any_index("The ignore_index is 0.", losses(8, N_CLASSES, index=0), hidden=True)
any_index("The ignore_index is 99.", losses(8, N_CLASSES, index=99), hidden=True)


test_nothing_counted = Check("If no position is counted, the loss is 0.", about=NOTHING)


def of_nothing(*shape):
    """Return a case: losses of ignored positions, and which of them are nan."""

    def ask(student, rng):
        targets = torch.full(shape[:-1], IGNORED)
        found = [student.log_loss(rng.randn(*shape), targets) for _ in range(12)]
        return {"losses": found, "nan": [loss.isnan() for loss in found]}

    return ask


test_nothing_counted.case("Every position is ignored.", of_nothing(2, 5))
test_nothing_counted.case("Two sentences are ignored.", of_nothing(2, 3, 5), hidden=True)


test_logits_of_any_size = Check(
    "A number added to all logits of a position changes nothing, and huge logits are allowed.",
    about="extreme scores",
)
sizes = test_logits_of_any_size.case


def whole(rng):
    """Return whole numbers, whose sums are exact in every floating type that code computes in."""
    return rng.randint(-3, 4, 4, N_CLASSES).double()


for far in (1e4, -1e4, -1e7):
    shift = torch.tensor([far, 0.0, -far, far])[:, None]
    sizes(
        f"Rows of logits around {far:g} and {-far:g}.",
        output(LOSS, lambda rng, shift=shift: whole(rng) + shift, torch.tensor([1, 4, 0, 2])),
        hidden=True,
    )
for sentence, sign in (("rise from 20 to 20,000", 1), ("fall from -20 to -20,000", -1)):

    def finite(student, rng, sign=sign):
        logits, levels = rng.randn(2, 3, N_CLASSES), torch.logspace(1.3, 4.3, 24).double()
        return [student.log_loss(logits + sign * n, TARGETS).isfinite() for n in levels]

    sizes(f"Which losses are finite if the logits {sentence}.", finite)
sizes("Logits a hundred times as large.", losses(2, 3, 5, times=100.0))
sizes("Logits a thousand times as large.", losses(4, 5, times=1000.0), hidden=True)


test_gradients = Check(
    "Gradients reach the logits, and are the slopes of the loss.", about="gradient"
)
slopes = test_gradients.case


def losses_and_gradients(*shape, index=None):
    """Return a case: the losses of a dozen batches, and the gradients of their logits."""
    return lambda student, rng: [
        gradients(student.log_loss, *batch) for batch in batches(rng, *shape, index=index)
    ]


slopes("The gradient of the logits.", losses_and_gradients(2, 3, 5))
slopes(
    "The gradient of the logits where some positions are ignored.",
    losses_and_gradients(2, 4, 5, index=IGNORED),
)
slopes("The gradient of a row of logits.", losses_and_gradients(4, 7, index=IGNORED), hidden=True)


test_targets_that_do_not_fit = Check(
    "A target that is no class, or targets of another shape, are refused with ValueError.",
    about="refusals",
)
misuses = test_targets_that_do_not_fit.case
for sentence, targets in (
    ("A target of -1 that is not the ignore_index.", [2, -1, 0, 1]),
    ("A target of -2.", [-2, 1, 0, 1]),
    ("A target that is the number of classes.", [2, N_CLASSES, 0, 1]),
    ("One target for several positions.", [2]),
    ("A target fewer than positions.", [2, 1, 0]),
    ("Targets with an axis of size 1 at the end.", [[2], [1], [0], [4]]),
    ("Targets with an axis of size 1 at the front.", [[2, 1, 0, 4]]),
    ("A target without an axis.", 2),
):
    misuses(sentence, refused(LOSS, drawn(4, N_CLASSES), torch.tensor(targets)))
misuses(
    "A target far above the number of classes.",
    refused(LOSS, drawn(2, 3, 4), torch.tensor([[0, 1, 40], [2, 3, 0]])),
    hidden=True,
)
misuses("Targets that fit are accepted.", losses(4, N_CLASSES), about="values")


test_arguments = Check(
    "Both arguments may be views, neither is modified, and the loss has the dtype of logits.",
    about="views",
)
arguments = test_arguments.case
arguments(
    "Both arguments are transposed views.",
    output(LOSS, turned(drawn(2, 3, N_CLASSES), 0, 1), turned(WITH_IGNORED)),
)
arguments(
    "The classes are not the last axis in memory.",
    output(LOSS, turned(drawn(2, 3, N_CLASSES), 0, 2), TARGETS),
    hidden=True,
)
arguments(
    "Which numbers of the arguments are others after a call.",
    changed(LOSS, drawn(2, 3, N_CLASSES), WITH_IGNORED),
    about="writes",
)
for name, dtype in (("float64", torch.float64), ("float32", torch.float32)):
    logits = drawn(2, 3, N_CLASSES, dtype=dtype)
    arguments(f"Logits in {name}.", output(LOSS, logits, WITH_IGNORED), about="dtype")
arguments(
    "Logits in bfloat16.",
    output(LOSS, drawn(2, 3, N_CLASSES, dtype=torch.bfloat16), WITH_IGNORED),
    about="dtype",
    within=(5e-2, 5e-2),
)


flat = turned(drawn(6, N_CLASSES, dtype=torch.bfloat16)), TARGETS.flatten()
arguments("A view of two axes in bfloat16.", output(LOSS, *flat), within=(5e-2, 5e-2), hidden=True)
arguments(
    "Which numbers of two axes are others after a call.",
    changed(LOSS, drawn(6, N_CLASSES), TARGETS.flatten()),
    about="writes",
    hidden=True,
)


test_no_python_loops = Check("No Python loop runs over positions or classes.", points=0)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of positions or classes."""

    def called(batch=2, n_tokens=3, n_classes=5):
        logits, targets = next(batches(rng, batch, n_tokens, n_classes, index=IGNORED))
        flat = logits.flatten(0, 1), targets.flatten()
        return lambda: (student.log_loss(logits, targets), student.log_loss(*flat))

    grown = {"batch items": {"batch": (7, 15)}, "tokens": {"n_tokens": (10, 21)}}
    assert_vectorised(student, called, {**grown, "classes": {"n_classes": (16, 33)}})
