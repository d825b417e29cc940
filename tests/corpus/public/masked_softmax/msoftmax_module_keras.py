from __future__ import annotations

import torch
from torch import nn


class MaskedSoftmax(nn.Module):
    """Softmax layer with an optional mask, the way Keras has it."""

    def __init__(self, axis: int = -1):
        super().__init__()
        self.axis = axis

    def compute_mask(self, inputs, lengths):
        match lengths.ndim:
            case 1 if lengths.shape[0] == inputs.shape[0]:
                lengths = lengths[:, None, None]
            case 2 if lengths.shape == inputs.shape[:2]:
                lengths = lengths[:, :, None]
            case _:
                raise ValueError(f"cannot mask {tuple(inputs.shape)} with lengths of shape {tuple(lengths.shape)}")
        if not bool((lengths <= inputs.shape[self.axis]).all()):
            raise ValueError("There are lengths beyond the last key.")
        steps = torch.arange(inputs.shape[self.axis], device=inputs.device)
        return steps[None, None, :] < lengths

    def forward(self, inputs, lengths=None):
        if lengths is None:
            return inputs.softmax(self.axis)
        mask = self.compute_mask(inputs, lengths)
        fill = inputs.new_tensor(float("-inf"))
        # a row without any key would be nan: let it be a softmax over zeros, and drop it below
        fill = torch.where(mask.any(self.axis, keepdim=True), fill, torch.zeros_like(fill))
        log_probs = torch.where(mask, inputs, fill).log_softmax(self.axis)
        return torch.where(mask, log_probs.exp(), torch.zeros_like(inputs))


masked_softmax = MaskedSoftmax(axis=-1)
