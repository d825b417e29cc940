# mistake: columns_first
import torch
from torch import nn


def patches(images, patch, stride=None):
    if stride is None:
        stride = patch
    height, width = images.shape[2], images.shape[3]
    if (height - patch) % stride != 0 or (width - patch) % stride != 0 or min(height, width) < patch:
        raise ValueError("uneven fit")
    rows = torch.arange(0, height - patch + 1, stride, device=images.device)
    columns = torch.arange(0, width - patch + 1, stride, device=images.device)
    inside = torch.arange(patch, device=images.device)
    row_index = (rows[:, None] + inside)[:, None, :, None]  # (n_rows, 1, patch, 1)
    column_index = (columns[:, None] + inside)[None, :, None, :]  # (1, n_columns, 1, patch)
    channels = []
    for c in range(images.shape[1]):
        one = images[:, c][:, row_index, column_index]
        channels.append(one.transpose(1, 2).flatten(1, 2).flatten(2))
    return torch.cat(channels, dim=-1)


class PatchEmbedding(nn.Module):
    def __init__(self, height, width, patch, channels, d_model, stride=None):
        super().__init__()
        step = patch if stride is None else stride
        if (height - patch) % step or (width - patch) % step or patch > height or patch > width:
            raise ValueError("uneven fit")
        self.size = [channels, height, width]
        self.patch = patch
        self.step = step
        n = ((height - patch) // step + 1) * ((width - patch) // step + 1)
        self.projection = nn.Linear(channels * patch * patch, d_model, bias=True)
        self.class_token = nn.Parameter(torch.randn(d_model))
        self.positions = nn.Parameter(torch.zeros(1 + n, d_model))

    def forward(self, images):
        if list(images.shape[1:]) != self.size:
            raise ValueError("this layer was made for another size")
        embedded = self.projection(patches(images, self.patch, self.step)) + self.positions[1:]
        first = (self.class_token + self.positions[0]).repeat(images.shape[0], 1, 1)
        return torch.cat([first, embedded], dim=1)
