"""Reference solution: patches as windows along two axes, projected to tokens."""

import torch
from torch import Tensor, nn


def patches(images: Tensor, patch: int, stride: int | None = None) -> Tensor:
    """Cut images (batch, channels, height, width) into (batch, n, channels * patch * patch).

    Raises ValueError if the last patch does not end at the edge of the image.
    """
    # --- solution
    stride = patch if stride is None else stride
    for size in images.shape[2:]:
        if size < patch or (size - patch) % stride:
            raise ValueError(f"patches of {patch}, every {stride} pixels, do not fit into {size}")
    windows = images.unfold(2, patch, stride)  # (batch, channels, rows, width, patch)
    windows = windows.unfold(3, patch, stride)  # (batch, channels, rows, columns, patch, patch)
    windows = windows.permute(0, 2, 3, 1, 4, 5)  # (batch, rows, columns, channels, patch, patch)
    return windows.flatten(3).flatten(1, 2)  # (batch, rows * columns, channels * patch * patch)
    # --- end


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
        # --- solution
        self.size, self.patch, self.stride = (height, width), patch, stride
        step = patch if stride is None else stride
        n = ((height - patch) // step + 1) * ((width - patch) // step + 1)
        self.projection = nn.Linear(channels * patch * patch, d_model)
        self.class_token = nn.Parameter(torch.randn(d_model) * 0.02)  # (d_model,)
        self.positions = nn.Parameter(torch.randn(1 + n, d_model) * 0.02)  # (1 + n, d_model)
        # --- end

    def forward(self, images: Tensor) -> Tensor:
        """Map images (batch, channels, height, width) to (batch, 1 + n, d_model)."""
        # --- solution
        if images.shape[2:] != self.size:
            raise ValueError(f"images of {tuple(images.shape[2:])}, where {self.size} is expected")
        tokens = self.projection(patches(images, self.patch, self.stride))  # (batch, n, d_model)
        first = self.class_token.expand(len(images), 1, -1)  # (batch, 1, d_model)
        tokens = torch.cat([first, tokens], dim=1)  # (batch, 1 + n, d_model)
        return tokens + self.positions  # (batch, 1 + n, d_model)
        # --- end
