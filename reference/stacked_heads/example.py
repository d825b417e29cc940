# The worked example of the task, run on your own code.
import torch

import grader

x = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
torch.manual_seed(123)
stacked = StackedHeads(3, 2, 6, 0.0, 2)
grader.show(split_weights(stacked)[0], title="W_query of both heads")
grader.show(stacked(torch.stack([x, x]))[0], title="output", axes=("token", "feature"))
