"""Public tests of patch embedding, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
)

pytestmark = pytest.mark.needs("test_by_hand")


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No convolution and no unfold of torch does all of it."""
    images = rng.randn(2, 3, 4, 6, dtype=torch.float32)
    assert_written_by_hand(
        student, lambda: output_of(student.PatchEmbedding(4, 6, 2, 3, 5), images)
    )


@pytest.mark.points(4)
def test_worked_example(student):
    """The worked example: the second patch of an image of two channels."""
    found = student.patches(torch.arange(48.0).view(1, 2, 4, 6), 2)
    expect(found.shape == (1, 6, 8), f"the shape is {tuple(found.shape)}")
    assert_close(found[0, 1], torch.tensor([2.0, 3.0, 8.0, 9.0, 26.0, 27.0, 32.0, 33.0]))


@pytest.mark.points(1)
def test_overlapping_patches(student):
    """The worked example with a stride of 1, where patches overlap."""
    found = student.patches(torch.arange(48.0).view(1, 2, 4, 6), 2, stride=1)
    expect(found.shape == (1, 15, 8), f"the shape is {tuple(found.shape)}")
    assert_close(found[0, 1], torch.tensor([1.0, 2.0, 7.0, 8.0, 25.0, 26.0, 31.0, 32.0]))


@pytest.mark.points(3)
def test_parameters(student):
    """The projection, the class token and the positions are all that is learned."""
    module = student.PatchEmbedding(4, 6, 2, 3, 5)
    found = {name: tuple(p.shape) for name, p in module.named_parameters()}
    wanted = {
        "projection.weight": (5, 12),
        "projection.bias": (5,),
        "class_token": (5,),
        "positions": (7, 5),
    }
    expect(found == wanted, f"the parameters are {found}, where {wanted} are expected")


@pytest.mark.points(3)
def test_class_token_and_positions(student):
    """Of black images, what is left is the bias, the class token and the positions."""
    positions = torch.arange(21.0).view(7, 3)
    module = load_parameters(
        student.PatchEmbedding(4, 6, 2, 1, 3),
        {
            "projection.weight": torch.ones(3, 4),
            "projection.bias": torch.tensor([100.0, 200.0, 300.0]),
            "class_token": torch.tensor([1000.0, 2000.0, 3000.0]),
            "positions": positions,
        },
    )
    output = output_of(module, torch.zeros(2, 1, 4, 6, dtype=torch.float64))
    first = torch.tensor([[1000.0, 2000.0, 3000.0]])
    others = torch.tensor([[100.0, 200.0, 300.0]]).expand(6, 3)
    wanted = (torch.cat([first, others]) + positions).double()
    assert_close(output, wanted.expand(2, 7, 3))


@pytest.mark.points(1)
def test_images_that_do_not_fit(student, rng):
    """Images into which no whole number of patches fits are refused."""
    student.patches(rng.randn(1, 2, 4, 6), 2)
    uneven = rng.randn(1, 2, 4, 7)
    assert_refused(student, lambda: student.patches(uneven, 2), "patches of 2 in 4 x 7 pixels")


@pytest.mark.points(0)
def test_dtype(student, rng):
    """The module works in bfloat16."""
    module = student.PatchEmbedding(4, 6, 2, 3, 5).bfloat16()
    output = output_of(module, rng.randn(2, 3, 4, 6, dtype=torch.bfloat16))
    assert_dtype(output, torch.bfloat16, "the output")


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over images or patches."""

    def called(batch=2, rows=2, columns=3):
        images = rng.randn(batch, 2, 2 * rows, 2 * columns)
        return lambda: student.patches(images, 2)

    more = {
        "images": {"batch": (8, 17)},
        "rows": {"rows": (9, 19)},
        "columns": {"columns": (9, 19)},
    }
    assert_vectorised(student, called, more)
