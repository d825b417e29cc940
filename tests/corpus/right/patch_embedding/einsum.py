# right
import torch
from torch import nn


def patches(images, patch, stride=None):
    """Pick rows and columns with one-hot matrices."""
    stride = patch if stride is None else stride
    batch, channels, height, width = images.shape
    for size in (height, width):
        if size < patch or (size - patch) % stride != 0:
            raise ValueError(f"patches of {patch} with stride {stride} do not fit {size}")

    def picker(size):
        n = (size - patch) // stride + 1
        index = torch.arange(n)[:, None] * stride + torch.arange(patch)
        return nn.functional.one_hot(index, size).to(images)

    picked = torch.einsum("bchw,iph,jqw->bijcpq", images, picker(height), picker(width))
    return picked.reshape(batch, -1, channels * patch * patch)


class PatchEmbedding(nn.Module):
    def __init__(self, height, width, patch, channels, d_model, stride=None):
        super().__init__()
        self.height, self.width, self.patch, self.channels = height, width, patch, channels
        self.stride = stride or patch
        if height < patch or width < patch or (height - patch) % self.stride or (width - patch) % self.stride:
            raise ValueError("the patches do not fit into the image")
        rows = (height - patch) // self.stride + 1
        columns = (width - patch) // self.stride + 1
        self.projection = nn.Linear(channels * patch * patch, d_model)
        self.class_token = nn.Parameter(torch.zeros(d_model))
        self.positions = nn.Parameter(torch.empty(1 + rows * columns, d_model).normal_(std=0.02))

    def forward(self, images):
        if tuple(images.shape[1:]) != (self.channels, self.height, self.width):
            raise ValueError(f"images of {tuple(images.shape)}")
        pieces = patches(images, self.patch, self.stride)
        tokens = torch.einsum("bnf,df->bnd", pieces, self.projection.weight) + self.projection.bias
        first = torch.einsum("b,d->bd", tokens.new_ones(len(tokens)), self.class_token)[:, None]
        return torch.cat((first, tokens), dim=1) + self.positions[None]
