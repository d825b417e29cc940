# broken: rows and columns that do not fit are cut off without a word in patches
import torch
from torch import nn


def patches(images, patch, stride=None):
    s = stride or patch
    return (
        images.unfold(2, patch, s)
        .unfold(3, patch, s)
        .permute(0, 2, 3, 1, 4, 5)
        .flatten(3)
        .flatten(1, 2)
    )


class PatchEmbedding(nn.Module):
    def __init__(self, height, width, patch, channels, d_model, stride=None):
        super().__init__()
        if (height - patch) % (stride or patch) or (width - patch) % (stride or patch):
            raise ValueError("patches do not fit")
        self.shape, self.patch, self.stride = (channels, height, width), patch, stride
        n = patches(torch.zeros(1, *self.shape), patch, stride).shape[1]
        self.projection = nn.Linear(channels * patch**2, d_model)
        self.class_token = nn.Parameter(torch.randn(d_model) * 0.02)
        self.positions = nn.Parameter(torch.randn(n + 1, d_model) * 0.02)

    def forward(self, images):
        if images.shape[1:] != self.shape:
            raise ValueError("wrong size")
        x = self.projection(patches(images, self.patch, self.stride))
        return torch.cat([self.class_token.expand(len(x), 1, -1), x], 1) + self.positions
