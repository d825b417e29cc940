# right
import torch
from torch import Tensor, nn


def count(size: int, patch: int, stride: int) -> int:
    n, rest = divmod(size - patch, stride)
    if n < 0 or rest:
        raise ValueError(f"{size} is not covered by patches of {patch} at stride {stride}")
    return n + 1


def patches(images: Tensor, patch: int, stride: int | None = None) -> Tensor:
    stride = patch if stride is None else stride
    b, c, h, w = images.shape
    rows, columns = count(h, patch, stride), count(w, patch, stride)
    sb, sc, sh, sw = images.stride()
    view = images.as_strided(
        (b, rows, columns, c, patch, patch),
        (sb, stride * sh, stride * sw, sc, sh, sw),
        images.storage_offset(),
    )
    return view.reshape(b, rows * columns, c * patch**2)


class PatchEmbedding(nn.Module):
    def __init__(self, height, width, patch, channels, d_model, stride=None):
        super().__init__()
        self.stride = stride if stride is not None else patch
        n = count(height, patch, self.stride) * count(width, patch, self.stride)
        self.expected = torch.Size((channels, height, width))
        self.patch = patch
        self.projection = nn.Linear(channels * patch * patch, d_model)
        self.class_token = nn.Parameter(torch.zeros(d_model))
        self.positions = nn.Parameter(torch.zeros(1 + n, d_model))

    def forward(self, images: Tensor) -> Tensor:
        assert images.shape[1:] == self.expected, "images of another size"
        x = self.projection(patches(images, self.patch, self.stride))
        out = torch.empty(x.shape[0], x.shape[1] + 1, x.shape[2], dtype=x.dtype, device=x.device)
        out[:, 0] = self.class_token
        out[:, 1:] = x
        return out + self.positions
