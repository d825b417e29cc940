"""The checks of cross-entropy, of its gradient by hand, and their cases."""

import functools

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
    often,
    output,
    refused,
    turned,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("position", "class")
LEFT_OUT = Aspect("left out", "batches with ignored positions")
SMOOTHED = Aspect("smoothed", "the values with label smoothing")
BY_HAND = Aspect("by hand", "what `cross_entropy_gradient` returns")
NOTHING = Aspect("nothing", "batches in which no position is kept", is_edge=True)
INFINITE = Aspect("infinite", "logits of -inf", is_edge=True)
LOSS, GRADIENT = "cross_entropy", "cross_entropy_gradient"
IGNORED = -100
LEFT_OUT_TARGETS = torch.tensor([[2, IGNORED, 4], [1, IGNORED, 3]])
CLOSE = (5e-3, 1e-4)  # more than the last bit of bfloat16, less than bfloat16 loses on the way


def batch(rng, *shape, index=None):
    """Return logits of a shape, and targets of which every third is the index, from the second."""
    logits, targets = rng.randn(*shape), rng.randint(0, shape[-1], *shape[:-1])
    places = torch.arange(targets.numel()).view(targets.shape)
    return logits, targets if index is None else targets.masked_fill(places % 3 == 1, index)


def asked(name, *shape, index=None, s=0.0, times=1.0, dtype=torch.float64):
    """Return a case: what a function gives for a batch; three losses, often."""

    def ask(student, rng):
        found, given = [], IGNORED if index is None else index
        for _ in range(3 if name == LOSS else 1):
            logits, targets = batch(rng, *shape, index=index)
            found.append(getattr(student, name)((logits * times).to(dtype), targets, given, s))
        return often(*found) if name == LOSS else found

    return ask


losses, by_hand = (functools.partial(asked, name) for name in (LOSS, GRADIENT))


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """Loss and gradient are written by hand, without autograd or a function that does all of it."""
    given = *batch(rng, 2, 3, 5, index=IGNORED), IGNORED, 0.2
    assert_written_by_hand(
        student, *(functools.partial(getattr(student, name), *given) for name in (LOSS, GRADIENT))
    )


test_every_position = Check(
    "Without ignored positions, the loss is the mean over all of them, with any leading axes.",
    points=2,
)
values = test_every_position.case
values("Several sentences.", losses(2, 3, 5))
values("A row of positions.", losses(4, 7))
values("As many sentences as tokens and classes.", losses(3, 3, 3), about="square")
values("Three leading axes.", losses(2, 3, 4, 5), about="leading axes")
values("No leading axis.", losses(6), about="leading axes")
values("No leading axis, and three classes.", losses(3), about="leading axes", hidden=True)
values("More positions than classes.", losses(7, 4), hidden=True)
values("One position.", losses(1, 6), about="single")
values("One position in one sentence.", losses(1, 1, 3), about="single", hidden=True)


test_ignored = Check(
    "Ignored positions, by any ignore_index, count neither in the sum nor in the mean.",
    points=2,
    about=LEFT_OUT,
)
ignored = test_ignored.case
ignored("Every third position is ignored.", losses(2, 5, 4, index=IGNORED))
ignored("By default, -100 is ignored, and nothing smoothed.", lambda student, rng: often(
    student.cross_entropy(*batch(rng, 5, 3, index=IGNORED))
))  # fmt: skip
ignored("Positions of a row are ignored.", losses(4, 5, index=IGNORED), hidden=True)
ignored("The ignore_index is -1.", losses(2, 5, 4, index=-1))
ignored("The ignore_index is that of a class.", losses(2, 5, 4, index=1))
ignored("The ignore_index is 0.", losses(8, 5, index=0), hidden=True)
ignored("The ignore_index is 99.", losses(3, 4, 3, index=99), hidden=True)
ignored("Ignored and smoothed.", losses(2, 5, 4, index=-1, s=0.3), about=SMOOTHED)


@ignored
def far_logits(student, rng):
    """The logits of ignored positions are 50."""
    logits, targets = batch(rng, 3, 4, 5, index=IGNORED)
    far = logits.masked_fill((targets == IGNORED)[..., None], 50.0)
    return often(student.cross_entropy(far, targets))


test_smoothing = Check(
    "Label smoothing mixes in the mean of -log(p) over all classes.", points=2, about=SMOOTHED
)
smoothed = test_smoothing.case
smoothed("A label_smoothing of 0.3.", losses(2, 3, 5, s=0.3))
smoothed("A label_smoothing of 1.", losses(4, 3, s=1), about=SMOOTHED)
smoothed("A label_smoothing of 0.1, without leading axes.", losses(4, s=0.1))
smoothed("A label_smoothing of 0.85.", losses(5, 2, 3, s=0.85), hidden=True)


test_gradient_by_hand = Check(
    "cross_entropy_gradient is (p - q) / n_kept, and 0 where a position is ignored.",
    points=2,
    about=BY_HAND,
)
hand = test_gradient_by_hand.case
hand("The gradient by hand.", by_hand(2, 3, 5))
hand("The gradient by hand of square logits.", by_hand(4, 4))
hand("The gradient by hand with three leading axes.", by_hand(2, 3, 4, 5), hidden=True)
hand("The gradient by hand without leading axes.", by_hand(12), about="leading axes")
hand("The gradient by hand of one position.", by_hand(1, 12), about="single")
hand("The gradient by hand of one sentence.", by_hand(1, 3, 5), about="single")
hand("The gradient by hand of one class.", by_hand(2, 3, 1), about="single")
hand("The gradient by hand, with ignored positions.", by_hand(2, 5, 4, index=IGNORED))
hand("The gradient by hand, with an ignored class.", by_hand(7, 3, index=1))
hand("The gradient by hand, with label smoothing.", by_hand(2, 4, 5, s=0.3))
hand("The gradient by hand, ignored and smoothed.", by_hand(7, 5, index=-1, s=0.2), hidden=True)
default = output(GRADIENT, drawn(2, 3, 5), LEFT_OUT_TARGETS)
hand("The gradient by hand, with the default arguments.", default)


test_nothing_kept = Check(
    "If no position is kept, loss and gradient are 0.", points=2, about=NOTHING
)


def of_nothing(*shape, s=0.0):
    """Return a case: the loss of ignored positions and its gradient, and whether they are nan."""

    def ask(student, rng):
        targets = torch.full(shape[:-1], -1)
        found = gradients(student.cross_entropy, rng.randn(*shape), targets, -1, s)
        slope, loss = found.get("input 0", "none"), found["output"]
        slope_is_nan = slope.isnan() if torch.is_tensor(slope) else slope
        return {"loss": often(loss, loss.isnan()), "gradient": slope, "its nan": slope_is_nan}

    return ask


nothing = test_nothing_kept.case
nothing("Every position is ignored.", of_nothing(4, 5))
nothing("Two sentences are ignored, with label smoothing.", of_nothing(2, 3, 5, s=0.4))
nothing("The only position is ignored.", of_nothing(7), hidden=True)


@nothing
def nothing_by_hand(student, rng):
    """The gradient by hand of ignored positions, and where it is nan."""
    found = student.cross_entropy_gradient(rng.randn(2, 3, 5), torch.full((2, 3), IGNORED))
    return {"gradient": found, "nan": found.isnan()}


test_any_size = Check(
    "Huge logits give a finite loss, and a logit of -inf for another class changes nothing else.",
    points=2,
    about="extreme scores",
)
sizes = test_any_size.case


def whole(rng):
    """Return whole numbers, whose sums are exact in every floating type that code computes in."""
    return rng.randint(-3, 4, 4, 5).double()


for far in (1e4, -1e4, -1e7):
    shift, targets = torch.tensor([far, 0.0, -far, far])[:, None], torch.tensor([1, 4, 0, 2])
    recipe = lambda rng, shift=shift: whole(rng) + shift  # noqa: E731
    sizes(f"Rows around {far:g} and {-far:g}.", output(LOSS, recipe, targets), hidden=True)
    sizes(f"The gradient by hand around {far:g}.", output(GRADIENT, recipe, targets, -1, 0.1))
sizes("The gradient by hand of thousands.", by_hand(2, 3, 5, times=1000.0), hidden=True)
for sentence, sign in (("rise from 20 to 20,000", 1), ("fall from -20 to -20,000", -1)):

    def finite(student, rng, sign=sign):
        logits, targets = batch(rng, 2, 3, 5, index=IGNORED)
        levels = torch.logspace(1.3, 4.3, 12).double()
        losses = [student.cross_entropy(logits + sign * n, targets) for n in levels]
        return [loss.isfinite() for loss in losses]

    sizes(f"Which losses are finite if the logits {sentence}.", finite)
sizes("Logits a hundred times as large.", losses(2, 3, 5, times=100.0))
sizes("Logits a thousand times as large, smoothed.", losses(4, 5, times=1000.0, s=0.2), hidden=True)


def without_a_class(*shape):
    """Return a case: loss and gradient where the logits of class 0 are -inf, which is no target."""

    def ask(student, rng):
        logits, targets = batch(rng, *shape)
        logits[..., 0] = -torch.inf
        found = gradients(student.cross_entropy, logits, targets.clamp(min=1))
        return [often(e, e.isfinite()) for e in found.values() if torch.is_tensor(e)]

    return ask


sizes("A class of -inf.", without_a_class(4, 5), about=INFINITE)
sizes("A class of -inf in two sentences.", without_a_class(2, 3, 4), about=INFINITE, hidden=True)


@sizes(about=INFINITE)
def without_a_class_by_hand(student, rng):
    """The gradient by hand where a class has logits of -inf."""
    logits, targets = batch(rng, 4, 5)
    logits[..., 0] = -torch.inf
    found = student.cross_entropy_gradient(logits, targets.clamp(min=1))
    return {"gradient": found, "finite": found.isfinite()}


test_gradients = Check("Gradients reach the logits of cross_entropy.", points=2, about="gradient")


def slopes(*shape, index=IGNORED, s=0.0):
    """Return a case: a loss, and the gradient of its logits."""
    return lambda student, rng: gradients(
        student.cross_entropy, *batch(rng, *shape, index=index), index, s
    )


test_gradients.case("The gradient of the logits.", slopes(2, 3, 5))
test_gradients.case("The gradient with ignored positions.", slopes(2, 4, 5, index=-1))
test_gradients.case("The gradient with label smoothing.", slopes(4, 7, s=0.3), hidden=True)
test_gradients.case("The gradient without leading axes.", slopes(12, s=0.1), hidden=True)


test_arguments = Check(
    "Arguments may be views and are not modified, dtypes are kept, and no Python loop runs.",
    points=2,
    about="views",
)
arguments = test_arguments.case
VIEWS = turned(drawn(2, 3, 5), 0, 1), turned(LEFT_OUT_TARGETS), IGNORED
FLAT = turned(drawn(6, 5)), LEFT_OUT_TARGETS.flatten(), IGNORED
for name in (LOSS, GRADIENT):
    arguments(f"Transposed views for `{name}`.", output(name, *VIEWS, 0.1))
    arguments(f"Turned rows for `{name}`.", output(name, *FLAT, 0.1), hidden=True)
    for given in ((drawn(2, 3, 5), LEFT_OUT_TARGETS), (drawn(6, 5), LEFT_OUT_TARGETS.flatten())):
        sentence = f"Which numbers of {given[1].dim() + 1} axes `{name}` has changed."
        arguments(sentence, changed(name, *given, IGNORED, 0.1), about="writes")
for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
    for ask in (losses, by_hand):
        case = ask(2, 3, 5, index=IGNORED, s=0.1, dtype=dtype)
        sentence = f"Logits in {name} (`{ask.args[0]}`)."
        arguments(sentence, case, about="dtype", within=CLOSE)
        case = ask(7, 5, times=9.0, dtype=dtype)
        arguments(f"Rows: {sentence}", case, about="dtype", within=CLOSE, hidden=True)
arguments("No leading axes in bfloat16.", losses(5, times=4.0, dtype=torch.bfloat16), about="dtype",
          within=CLOSE, hidden=True)  # fmt: skip


@arguments(about="dtype", within=CLOSE)
def many_in_float16(student, rng):
    """The loss of 3,000 positions in float16, of which each is 40."""
    logits = torch.tensor([0.0, 40.0, -9.0], dtype=torch.float16).expand(3000, 3)
    targets = torch.zeros(3000, dtype=torch.int64)
    found = student.cross_entropy(logits, targets)
    return often(found, found.isfinite())


@arguments(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of positions or classes."""

    def called(batch=2, n_tokens=3, n_classes=5):
        logits, targets = rng.randn(batch, n_tokens, n_classes), rng.randint(0, 5, batch, n_tokens)
        flat, both = (logits.flatten(0, 1), targets.flatten()), (LOSS, GRADIENT)
        return lambda: [
            getattr(student, name)(*given, 1, 0.1)
            for name in both
            for given in ((logits, targets), flat)
        ]

    grown = {"batch items": {"batch": (7, 15)}, "tokens": {"n_tokens": (10, 21)}}
    assert_vectorised(student, called, {**grown, "classes": {"n_classes": (16, 33)}})


test_refusals = Check(
    "A kept target that is no class, and a label_smoothing outside 0 to 1, are refused.",
    about="refusals",
)
misuses = test_refusals.case
TARGETS = torch.tensor([2, 0, 4, 1])
for name in (LOSS, GRADIENT):
    for wrong in (-1, -2, 5, IGNORED):
        targets = torch.tensor([2, wrong, 0, 1])
        index = IGNORED if wrong != IGNORED else -1
        ask = refused(name, drawn(4, 5), targets, index)
        misuses(f"A target of {wrong} for `{name}`, which ignores {index}.", ask)
    for s in (-0.1, 1.5):
        ask = refused(name, drawn(4, 5), TARGETS, IGNORED, s)
        misuses(f"A label_smoothing of {s} for `{name}`.", ask)
ask = refused(LOSS, drawn(2, 3, 4), torch.tensor([[0, 1, 40], [2, 3, 0]]))
misuses("A target far above the number of classes.", ask, hidden=True)
misuses("Targets that fit are accepted.", losses(4, 5), about="values")
