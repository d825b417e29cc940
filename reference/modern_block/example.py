# The worked example of the task, run on your own code: in one call, and in two with the cache.
import torch

import grader


def wave(*shape, start=0):
    return (torch.arange(torch.Size(shape).numel()) + start).double().sin().view(shape)


block, x = ModernBlock(16, 4, 2, 6, 16).double(), wave(1, 5, 16)
for i, (_, parameter) in enumerate(sorted(block.named_parameters())):
    parameter.data.copy_(wave(*parameter.shape, start=100 * i))
whole, _ = block(x)  # (batch, n_tokens, d_model)
first, cache = block(x[:, :3])
second, _ = block(x[:, 3:], cache)
columns = [each[0, :, :2] for each in (whole, torch.cat([first, second], dim=1))]
grader.show(torch.cat(columns, dim=1), title="in one call, then in two", axes=("token", "feature"))
