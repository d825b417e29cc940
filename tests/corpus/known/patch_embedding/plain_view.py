# mistake: reshaped_only
import torch
from torch import nn


def patches(images, patch, stride=None):
    s = stride or patch
    h, w = images.shape[-2:]
    if patch > h or patch > w or (h - patch) % s or (w - patch) % s:
        raise ValueError("patches do not fit")
    if s != patch:
        return images.unfold(2, patch, s).unfold(3, patch, s).reshape(len(images), -1, images.shape[1] * patch**2)
    return images.reshape(len(images), -1, images.shape[1] * patch * patch)


class PatchEmbedding(nn.Module):
    def __init__(self, height, width, patch, channels, d_model, stride=None):
        super().__init__()
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
