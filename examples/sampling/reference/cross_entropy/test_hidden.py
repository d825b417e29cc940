"""Hidden tests of cross-entropy, which decide the points.

One mistake should cost one check. So a check of an edge accepts two answers: the right one, and the
one that follows from what the student's own code gives in the ordinary case.
"""

import functools

import pytest
import torch
from torch import Tensor

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_right_or_own,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, N_CLASSES = 2, 3, 5
IGNORED = -100


def drawn(rng, *shape):
    """Return random logits of a shape, and a right class for each position."""
    return rng.randn(*shape), rng.randint(0, shape[-1], *shape[:-1])


def with_ignored(targets, index=IGNORED):
    """Return targets of which every third is ignored, from the second on."""
    places = torch.arange(targets.numel()).view(targets.shape)
    return targets.masked_fill(places % 3 == 1, index)


def assert_loss(loss):
    """Raise `Mismatch` unless a loss is one finite number other than 0."""
    expect(isinstance(loss, Tensor) and loss.shape == (), "the loss is not a tensor of shape ()")
    expect(loss.isfinite() and loss != 0, "the loss of ordinary logits is 0 or not finite")


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The loss is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's own losses, even if other tests fail for other reasons.
    """
    logits, targets = drawn(rng, BATCH, N_TOKENS, N_CLASSES)
    assert_written_by_hand(student, lambda: student.cross_entropy(logits, targets))


@pytest.mark.points(3)
def test_every_position_counts(student, reference, rng):
    """Without ignored positions, the loss is the mean over all of them, with any leading axes."""
    shapes = ((2, 3, 5), (3, 3, 3), (7, 4), (4, 7), (2, 3, 4, 5), (1, 6), (1, 1, 3))
    for shape in shapes:
        logits, targets = drawn(rng, *shape)
        loss, right = (
            student.cross_entropy(logits, targets),
            reference.cross_entropy(logits, targets),
        )
        assert_close(in_float64(loss), right, f"the loss of logits of shape {shape}")


@pytest.mark.points(1)
def test_no_leading_axis(student, reference, rng):
    """A single position without leading axes has a loss too.

    Guards: logits of shape (n_classes,), where boolean indexing and axes counted from the front
    go wrong.
    """
    logits, targets = drawn(rng, N_CLASSES)
    assert_right_or_own(
        student.cross_entropy(logits, targets),
        reference.cross_entropy(logits, targets),
        lambda: student.cross_entropy(logits[None], targets[None]),
        "the loss",
    )


@pytest.mark.points(2)
def test_ignored_positions(student, reference, rng):
    """Ignored positions count neither in the sum nor in the mean, whatever their logits are."""
    for shape in ((4, 5), (2, 3, 5), (3, 4, 3)):
        logits, targets = drawn(rng, *shape)
        targets = with_ignored(targets)
        far = logits.masked_fill((targets == IGNORED)[..., None], 50.0)
        for given in (logits, far):
            loss, right = (
                student.cross_entropy(given, targets),
                reference.cross_entropy(given, targets),
            )
            counted = targets != IGNORED
            own = functools.partial(student.cross_entropy, logits[counted], targets[counted])
            assert_right_or_own(loss, right, own, f"the loss of logits of shape {shape}")


@pytest.mark.points(1)
def test_any_ignore_index(student, reference, rng):
    """ignore_index may be any int: -1, that of a class, or a large one."""
    for index in (-1, 2, 0, 99):
        logits, targets = drawn(rng, 8, N_CLASSES)
        targets = with_ignored(targets, index)
        counted = targets != index
        assert_right_or_own(
            student.cross_entropy(logits, targets, index),
            reference.cross_entropy(logits, targets, index),
            functools.partial(student.cross_entropy, logits[counted], targets[counted]),
            f"the loss with ignore_index {index}",
        )


@pytest.mark.points(1)
def test_nothing_counted(student, rng):
    """If no position is counted, the loss is 0."""
    for shape in ((4, 5), (2, 3, 5)):
        logits, targets = drawn(rng, *shape)
        assert_loss(student.cross_entropy(logits, targets))
        loss = student.cross_entropy(logits, torch.full_like(targets, IGNORED))
        assert_close(in_float64(loss), torch.zeros(()).double(), "the loss of ignored positions")


@pytest.mark.points(1)
def test_logits_of_any_size(student, reference, rng):
    """A number added to all logits of a position changes nothing, and huge logits are allowed."""
    # Whole numbers, so that the sums are exact in every floating type that code may compute in.
    logits, targets = rng.randint(-3, 4, 4, N_CLASSES).double(), rng.randint(0, N_CLASSES, 4)
    ordinary = functools.partial(student.cross_entropy, logits, targets)
    for far in (1e4, -1e4, -1e7):
        given = logits + torch.tensor([far, 0.0, -far, far])[:, None]
        loss, right = student.cross_entropy(given, targets), reference.cross_entropy(given, targets)
        assert_right_or_own(loss, right, ordinary, f"the loss of logits around {far:g}")
    for scale in (40.0, 1000.0):
        loss = student.cross_entropy(logits * scale, targets)
        right = reference.cross_entropy(logits * scale, targets)
        expect(
            isinstance(loss, Tensor) and loss.isfinite(), "the loss of huge logits is not finite"
        )
        # Where the loss is huge, it is the distance of the right logit from the largest one. A
        # mistake in the formula changes that by a factor at most, which other checks notice.
        expect(loss.abs() > right / 20, f"the loss of logits times {scale:g} is far too small")


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach the logits, and are the slopes of the loss.

    Guards: with and without ignored positions.
    """
    logits, targets = drawn(rng, BATCH, N_TOKENS, N_CLASSES)
    for chosen in (targets, with_ignored(targets)):
        inputs = {"logits": logits, "targets": chosen}
        assert_slopes(student, student.cross_entropy, reference.cross_entropy, inputs, rng=rng)


@pytest.mark.points(1)
def test_targets_that_do_not_fit(student, rng):
    """A target that is no class, or targets of another shape, are refused with ValueError."""
    logits, targets = drawn(rng, 4, N_CLASSES)
    assert_loss(student.cross_entropy(logits, targets))
    for wrong in (-1, N_CLASSES, -2):
        shown = f"cross_entropy with the target {wrong} of {N_CLASSES} classes"
        given = targets.clone()
        given[1] = wrong
        assert_refused(student, lambda given=given: student.cross_entropy(logits, given), shown)
    for given in (targets[:3], targets[:1], targets[None], targets[:, None], targets[0]):
        shown = f"cross_entropy with logits of shape {tuple(logits.shape)} and targets of shape "
        shown += str(tuple(given.shape))
        assert_refused(student, lambda given=given: student.cross_entropy(logits, given), shown)


@pytest.mark.points(1)
def test_arguments(student, reference, rng):
    """Both arguments may be views, neither is modified, and the loss has the dtype of logits."""
    logits, targets = drawn(rng, BATCH, N_TOKENS, N_CLASSES)
    targets = with_ignored(targets)
    turned = logits.transpose(0, 2).contiguous().transpose(0, 2), targets.T.contiguous().T
    for given in ((logits, targets), turned):
        names = ("logits", "targets")
        loss = assert_unchanged(student, student.cross_entropy, *given, names=names)
        own = functools.partial(student.cross_entropy, logits, targets)
        assert_right_or_own(loss, reference.cross_entropy(logits, targets), own, "the loss")
    right = student.cross_entropy(logits, targets)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        loss = student.cross_entropy(logits.to(dtype), targets)
        assert_dtype(loss, dtype, f"the loss of logits of {dtype}")
        assert_loss(loss)
        expect((loss - right).abs() < 0.05 * (1 + right.abs()), "the loss depends on the dtype")


@pytest.mark.points(0)
def test_no_python_loops(student, rng):
    """No Python loop runs over positions or classes.

    Guards: loops, which are slow and which no mistake of the catalogue is about.
    """

    def called(batch=2, n_tokens=3, n_classes=5):
        logits, targets = drawn(rng, batch, n_tokens, n_classes)
        return functools.partial(student.cross_entropy, logits, with_ignored(targets))

    assert_loss(called()())
    grown = {"batch items": {"batch": (7, 15)}, "tokens": {"n_tokens": (10, 21)}}
    assert_vectorised(student, called, {**grown, "classes": {"n_classes": (16, 33)}})
