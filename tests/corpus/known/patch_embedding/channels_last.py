# mistake: channels_last
# The numbers of a patch are ordered by row, column, channel, as in einops' '(p1 p2 c)'.
import torch
from torch import Tensor, nn


def patches(images: Tensor, patch: int, stride: int | None = None) -> Tensor:
    stride = stride or patch
    _, _, height, width = images.shape
    for side in (height, width):
        if side < patch or (side - patch) % stride:
            raise ValueError(f"patches of {patch} at a stride of {stride} do not fit into {side} pixels")
    windows = images.unfold(2, patch, stride).unfold(3, patch, stride)  # b, c, rows, columns, p, p
    return windows.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)


class PatchEmbedding(nn.Module):
    def __init__(self, height, width, patch, channels, d_model, stride=None):
        super().__init__()
        self.img_size, self.patch, self.stride = (height, width), patch, stride
        num_patches = patches(torch.zeros(1, channels, height, width), patch, stride).shape[1]
        self.projection = nn.Linear(channels * patch**2, d_model)
        self.class_token = nn.Parameter(torch.zeros(d_model))
        self.positions = nn.Parameter(torch.randn(num_patches + 1, d_model) * 0.02)

    def forward(self, x: Tensor) -> Tensor:
        if tuple(x.shape[-2:]) != self.img_size:
            raise ValueError(f"images of {tuple(x.shape[-2:])} pixels, not of {self.img_size}")
        x = self.projection(patches(x, self.patch, self.stride))
        cls_tokens = self.class_token.expand(x.shape[0], 1, -1)
        x = torch.cat((cls_tokens, x), dim=1)
        return x + self.positions
