r"""# Patch embedding

A Transformer reads a sequence of vectors. To make an image such a sequence,
cut it into square patches and map the pixels of each patch to d_model
features. A learned class token stands in front, whose output can tell what
the image shows, and a learned vector for each place is added, because
attention does not see where a token stands.

    tokens = projection(patches(images))             n tokens for each image
    output = [class_token, tokens] + positions

Patches begin at every stride-th pixel, down and across. With the default, the
stride is the side of a patch, so patches touch; with a smaller stride they
overlap, and with a larger one they leave pixels out.

    rows    = (height - patch) / stride + 1
    columns = (width - patch) / stride + 1
    n       = rows * columns

Write

    patches(images, patch, stride=None)

    images   (batch, channels, height, width)
    patch    the side of a patch in pixels, 1 or more
    stride   pixels from one patch to the next, 1 or more; None means patch
    returns  (batch, n, channels * patch * patch)       dtype of images

    PatchEmbedding(height, width, patch, channels, d_model, stride=None)
                                                        an nn.Module
    projection    nn.Linear   channels * patch * patch -> d_model, with bias
    class_token   (d_model,)                            parameter
    positions     (1 + n, d_model)                      parameter

    forward(images)
    images   (batch, channels, height, width)
    returns  (batch, 1 + n, d_model)                    dtype of images

There are no other parameters, and their first values are not graded.

Requirements
  - Patches come row by row, from left to right in each row of patches. The
    numbers of a patch are ordered by channel, then row, then column, as in
    the weight of a convolution.
  - The class token is token 0. Positions are added to it as well.
  - The last patch has to end at the edge of the image. If height or width is
    less than patch, or (height - patch) or (width - patch) is no multiple of
    the stride, raise ValueError: in patches, and in PatchEmbedding when it is
    made or when it is called.
  - PatchEmbedding raises ValueError for images of another height or width
    than its own, even if they have as many patches.
  - The module supports .to(dtype), including bfloat16.
  - images may be a view that is not contiguous. It is not modified.
  - No Python loop runs over images or patches.
  - torch's convolutions, F.unfold, nn.Unfold and pixel_unshuffle are not
    allowed; the method Tensor.unfold, which cuts along one axis, is.

Example

    images = torch.arange(48.).view(1, 2, 4, 6)      two channels of 4 x 6

     0  1 |  2  3 |  4  5        24 25 | 26 27 | 28 29
     6  7 |  8  9 | 10 11        30 31 | 32 33 | 34 35
    ------+-------+------        ------+-------+------
    12 13 | 14 15 | 16 17        36 37 | 38 39 | 40 41
    18 19 | 20 21 | 22 23        42 43 | 44 45 | 46 47

    patches(images, 2)              (1, 6, 8), of which the second is
        [2., 3., 8., 9., 26., 27., 32., 33.]
    patches(images, 2, stride=1)    (1, 15, 8), of which the second is
        [1., 2., 7., 8., 25., 26., 31., 32.]

Write it by hand. These names of torch are not accepted here: conv*d, conv_,
convolution, Conv*d, nn.functional.*fold, Unfold, Fold, im2col,
pixel_unshuffle, PixelUnshuffle.

What is new: The tokens of an image: what a Transformer reads in place of
words.

From: An Image is Worth 16x16 Words (2021)
"""

import torch
from torch import Tensor, nn


def patches(images: Tensor, patch: int, stride: int | None = None) -> Tensor:
    """Cut images (batch, channels, height, width) into (batch, n, channels * patch * patch).

    Raises ValueError if the last patch does not end at the edge of the image.
    """
    raise NotImplementedError("fill in patch_embedding")


class PatchEmbedding(nn.Module):
    """A token for each patch behind a class token, with a learned vector added to each."""

    def __init__(
        self,
        height: int,
        width: int,
        patch: int,
        channels: int,
        d_model: int,
        stride: int | None = None,
    ) -> None:
        super().__init__()
        raise NotImplementedError("fill in patch_embedding")

    def forward(self, images: Tensor) -> Tensor:
        """Map images (batch, channels, height, width) to (batch, 1 + n, d_model)."""
        raise NotImplementedError("fill in patch_embedding")
