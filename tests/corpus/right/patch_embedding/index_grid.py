# right: Row and column numbers of all pixels of all patches as an index; the class token is written into an empty output.
import torch
from torch import Tensor, nn


def starts(side: int, patch: int, stride: int) -> torch.Tensor:
    if side < patch:
        raise ValueError("the image is smaller than a patch")
    if (side - patch) % stride != 0:
        raise ValueError("the last patch does not end at the edge")
    return torch.arange(0, side - patch + 1, stride)


def patches(images, patch, stride=None):
    if stride is None:
        stride = patch
    b, c, h, w = images.shape
    inner = torch.arange(patch)
    y = (starts(h, patch, stride)[:, None] + inner).to(images.device)  # rows, patch
    x = (starts(w, patch, stride)[:, None] + inner).to(images.device)  # columns, patch
    cut = images[:, :, y[:, None, :, None], x[None, :, None, :]]  # b, c, rows, columns, patch, patch
    return torch.einsum("bcrsyx->brscyx", cut).reshape(b, len(y) * len(x), c * patch * patch)


class PatchEmbedding(nn.Module):
    def __init__(self, height, width, patch, channels, d_model, stride=None):
        super().__init__()
        self.size = torch.Size([height, width])
        self.how = dict(patch=patch, stride=patch if stride is None else stride)
        n = len(starts(height, **self.how)) * len(starts(width, **self.how))
        self.projection = nn.Linear(channels * patch * patch, d_model, bias=True)
        self.class_token = nn.Parameter(torch.empty(d_model).normal_(std=0.02))
        self.positions = nn.Parameter(torch.zeros(1 + n, d_model))

    def forward(self, images):
        if images.shape[2:] != self.size:
            raise ValueError("images of another size")
        tokens = self.projection(patches(images, **self.how))
        output = tokens.new_empty(tokens.shape[0], tokens.shape[1] + 1, tokens.shape[2])
        output[:, 0] = self.class_token + self.positions[0]
        output[:, 1:] = tokens + self.positions[1:]
        return output
