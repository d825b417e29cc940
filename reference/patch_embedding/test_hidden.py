"""The checks of patch embedding and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    Check,
    argument_cases,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    dtype_cases,
    gradient,
    moved,
    output,
    output_of,
    parameters,
    refused,
    turned,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("image", "patch", "number")
PATCHES, EMBEDDING = "patches", "PatchEmbedding"
PARTS = ("projection", "class_token", "positions")
X = drawn(2, 3, 6, 8)  # images of three rows and four columns of patches of 2 x 2
ODD = drawn(2, 3, 6, 10)  # for patches of 4 x 4 with a stride of 2: two rows, four columns
LOW = torch.bfloat16


def embedding(*sizes, **options):
    """Return what makes a module whose three parts have random parameters."""
    return built(EMBEDDING, *sizes, layers=PARTS, **options)


def strided(**options):
    """Return what makes a module whose patches overlap."""
    return embedding(6, 10, 4, 3, 9, stride=2, **options)


embed = functools.partial(embedding, 6, 8, 2, 3, 7)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The patches are cut by hand, without a convolution or torch's unfold."""
    images = rng.randn(2, 3, 4, 6, dtype=torch.float32)
    assert_written_by_hand(
        student,
        lambda: student.patches(images, 2),
        lambda: output_of(student.PatchEmbedding(4, 6, 2, 3, 5), images),
    )


test_patches = Check(
    "Patches come row by row; their numbers are ordered by channel, row and column.", points=3
)
cut = test_patches.case
cut("Patches of 2 x 2.", output(PATCHES, X, 2))
cut("Patches of 4 x 4.", output(PATCHES, drawn(2, 3, 8, 12), 4))
cut("One channel.", output(PATCHES, drawn(2, 1, 9, 12), 3), about="single")
cut("One patch alone.", output(PATCHES, drawn(2, 3, 4, 4), 4), about="single")
cut("Patches of one pixel.", output(PATCHES, drawn(2, 3, 4, 5), 1), about="single")
cut("One row of patches.", output(PATCHES, drawn(2, 3, 4, 12), 4), about="single")
cut("As many rows as columns.", output(PATCHES, drawn(3, 3, 9, 9), 3), about="square")
cut("Patches of 5 x 5.", output(PATCHES, drawn(3, 2, 10, 15), 5), hidden=True)
cut("Higher than wide, one image.", output(PATCHES, drawn(1, 2, 12, 6), 3), hidden=True)


test_stride = Check(
    "Patches begin at every stride-th pixel, so they may overlap.", points=2, about="options"
)
step = test_stride.case
step("A stride of 2 for patches of 4.", output(PATCHES, ODD, 4, 2))
step("A stride of 1, by name.", output(PATCHES, drawn(2, 3, 5, 6), 2, stride=1))
step("A stride larger than a patch.", output(PATCHES, drawn(2, 3, 7, 12), 2, stride=5))
step("A stride of the patch.", output(PATCHES, drawn(2, 3, 6, 12), 3, stride=3))
step("One image of one channel.", output(PATCHES, drawn(1, 1, 6, 8), 4, 2), about="single")
step("A stride of 3 for patches of 4.", output(PATCHES, drawn(2, 3, 10, 13), 4, 3), hidden=True)


test_layers = Check(
    "projection, class_token (d_model,) and positions (1 + n, d_model) are all that is learned.",
    about="layers",
)
layers = test_layers.case
layers("The parameters.", parameters(EMBEDDING, 6, 8, 2, 3, 7))
layers("The parameters with a stride.", parameters(EMBEDDING, 6, 10, 4, 3, 9, stride=2))
layers("The parameters of other sizes.", parameters(EMBEDDING, 4, 20, 4, 2, 9), hidden=True)


test_tokens = Check(
    "The class token stands in front of the projected patches; positions are added to all.",
    points=2,
)
tokens = test_tokens.case
tokens("Twelve patches.", output(embed(), X))
tokens("Patches that overlap.", output(strided(), ODD), about="options")
tokens("Three rows and columns.", output(embedding(6, 6, 2, 3, 4), drawn(2, 3, 6, 6)))
tokens("Training mode.", output(embed(training=True), X), about="training")
mode = strided(training=True)
tokens("Training mode with a stride.", output(mode, ODD), about="training", hidden=True)
tokens("One image.", output(embed(), drawn(1, 3, 6, 8)), about="single")
tokens("One image with a stride.", output(strided(), drawn(1, 3, 6, 10)), about="single")
tokens("One patch.", output(embedding(4, 4, 4, 1, 6), drawn(3, 1, 4, 4)), about="single")
tokens("Higher than wide.", output(embedding(12, 4, 2, 2, 9), drawn(3, 2, 12, 4)), hidden=True)


test_gradients = Check("Gradients reach the images and all parameters.", about="gradient")
slopes = test_gradients.case
slopes("The gradients.", gradient(embed(), X))
slopes("The gradients of the parameters, with a stride.", gradient(strided(), ODD))
slopes("The gradients of patches.", gradient(PATCHES, X, 2))
slopes("The gradients of patches that overlap.", gradient(PATCHES, ODD, 4, 2))
ask = gradient(embedding(9, 6, 3, 2, 5), drawn(3, 2, 9, 6))
slopes("The gradients with patches of 3 x 3.", ask, hidden=True)


test_refusals = Check(
    "Images into which no whole number of patches fits, or of another size, are refused.",
    about="refusals",
)
refusals = test_refusals.case
for sentence, shape, *sizes in (
    ("Columns are left over", (2, 3, 4, 7), 2),
    ("Rows are left over", (2, 3, 5, 6), 2),
    ("Columns are left over at a stride of 2", (2, 3, 5, 8), 3, 2),
    ("The image is smaller than a patch", (2, 3, 3, 8), 4),
):
    refusals(f"{sentence}.", refused(PATCHES, drawn(*shape), *sizes))
uneven = embedding(9, 12, 2, 3, 7)
refusals("A module for patches that leave a row.", refused(uneven, drawn(2, 3, 9, 12)))
refusals("Height and width the other way round.", refused(embed(), drawn(2, 3, 8, 6)))
refusals("More rows than the module expects.", refused(embed(), drawn(2, 3, 8, 8)))
refusals("Rows are left over at a stride.", refused(PATCHES, drawn(2, 3, 8, 5), 3, 2), hidden=True)
refusals("As many patches, in one row.", refused(embed(), drawn(2, 3, 2, 24)), hidden=True)


test_argument = Check("Images may be a view, and are not modified.", about="views")
views = test_argument.case
argument_cases(test_argument, embed, X)
views("Height and width are swapped in memory.", output(embed(), turned(X)))
views("A view with a stride.", output(strided(), turned(ODD, 1, 3)), hidden=True)
for shown, images, *sizes in (
    ("a view", turned(X, 1, 3), 2),
    ("a strided view", turned(ODD), 4, 2),
):
    views(f"The patches of {shown}.", output(PATCHES, images, *sizes))
    ask = changed(PATCHES, images, *sizes)
    views(f"Which numbers of {shown} are others after a call.", ask, about="writes")
ask = changed(strided(), ODD)
views("Which numbers are others after a call with a stride.", ask, about="writes", hidden=True)


test_dtype = Check(
    "`module.to(…)` is enough to compute elsewhere, and the output has the dtype of the images.",
    about="dtype",
)
dtype_cases(test_dtype, embed, (2, 3, 6, 8), EMBEDDING, 6, 8, 2, 3, 7)
for sizes in ((2,), (2, 4)):
    ask = output(PATCHES, drawn(2, 3, 10, 6, dtype=LOW), *sizes)
    test_dtype.case(f"Patches in bfloat16, cut by {sizes}.", ask, hidden=True)
ask = moved(EMBEDDING, 6, 10, 4, 3, 9, stride=2, x=drawn(2, 3, 6, 10, dtype=torch.float32))
test_dtype.case("A strided module on another device.", ask, about="devices", hidden=True)
ask = output(strided(dtype=LOW), drawn(2, 3, 6, 10, dtype=LOW))
test_dtype.case("A strided module in bfloat16.", ask, within=(0.1, 0.1), hidden=True)


test_no_python_loops = Check("No Python loop runs over images or patches.", points=0)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of images, rows or columns."""

    def called(batch=2, rows=3, columns=4):
        images = rng.randn(batch, 2, rows * 2 + 1, columns * 2 + 1)
        module = embedding(rows * 2 + 1, columns * 2 + 1, 3, 2, 5, 2)(student, rng)
        small = embedding(rows * 2, columns * 2, 2, 2, 5)(student, rng)
        even = images[..., 1:, 1:]
        return lambda: [
            *(student.patches(even, 2), student.patches(images, 3, 2)),
            *(output_of(small, even), output_of(module, images)),
        ]

    sizes = {"images": {"batch": (105, 211)}, "rows": {"rows": (108, 217)}}
    assert_vectorised(student, called, sizes | {"columns": {"columns": (110, 223)}})
