# broken: images.view fails for images that are not contiguous, such as those of channels-last memory.
import torch
from torch import Tensor, nn


def patches(images: Tensor, patch: int, stride: int | None = None) -> Tensor:
    step = patch if stride is None else stride
    b, c, h, w = images.size()
    if min(h, w) < patch or (h - patch) % step or (w - patch) % step:
        raise ValueError(f"cannot cut {h} x {w} into patches of {patch} at every {step}")
    rows, columns = (h - patch) // step + 1, (w - patch) // step + 1
    if step == patch:
        x = images.view(b, c, rows * patch * columns * patch).view(b, c, rows, patch, columns, patch)
        x = x.permute(0, 2, 4, 1, 3, 5)
        return x.reshape(b, rows * columns, -1)
    pixels = [
        images[:, :, i : i + (rows - 1) * step + 1 : step, j : j + (columns - 1) * step + 1 : step]
        for i in range(patch)
        for j in range(patch)
    ]
    x = torch.stack(pixels, dim=2)  # b, c, patch * patch, rows, columns
    return x.reshape(b, c * patch * patch, rows * columns).transpose(1, 2)


class PatchEmbedding(nn.Module):
    def __init__(
        self, height: int, width: int, patch: int, channels: int, d_model: int, stride: int | None = None
    ) -> None:
        super().__init__()
        self.height, self.width, self.patch, self.stride = height, width, patch, stride or patch
        rows = max((height - patch) // self.stride + 1, 0)
        columns = max((width - patch) // self.stride + 1, 0)
        self.projection = nn.Linear(channels * patch * patch, d_model)
        self.class_token = nn.Parameter(torch.randn(d_model))
        self.positions = nn.Parameter(torch.randn(1 + rows * columns, d_model))

    def forward(self, images: Tensor) -> Tensor:
        if images.size(-2) != self.height or images.size(-1) != self.width:
            raise ValueError("wrong size of the images")
        tokens = self.projection(patches(images, self.patch, self.stride))
        first = (self.class_token + self.positions[0]).repeat(len(images), 1, 1)
        return torch.hstack([first, tokens + self.positions[1:]])
