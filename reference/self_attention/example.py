# The worked example of the task, run on your own code.
import torch

import grader

inputs = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
scores = scores_by_product(inputs)
second = torch.stack([scores[1], normalise(scores)[1], softmax_stable(scores)[1]])
grader.show(second, title="scores, normalise, softmax of token 2")
grader.show(context_vectors(inputs), title="context", axes=("token", "feature"))
