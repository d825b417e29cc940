# The worked example of the task, run on your own code.
import torch

import grader


def wave(*shape, start=0):
    return (torch.arange(torch.Size(shape).numel()) + start).double().sin().view(shape)


block = ModernBlock(16, 4, 2, 6, 16).double()
with torch.no_grad():
    for i, (_, parameter) in enumerate(sorted(block.named_parameters())):
        parameter.copy_(wave(*parameter.shape, start=100 * i))
output, cache = block(wave(1, 5, 16))
grader.show(output[0, :, :4], title="the first columns of the output", axes=("token", "feature"))
