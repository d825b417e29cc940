# The worked example of the task, run on your own code.
import torch

import grader

probabilities = torch.tensor([0.1, 0.4, 0.05, 0.25, 0.2])
rows = [
    distribution(probabilities.log(), top_p=0.7),
    distribution(probabilities.log(), top_k=3, top_p=0.75),
]
grader.show(torch.stack(rows), title="top-p, and top-k with top-p", axes=("row", "token"))
