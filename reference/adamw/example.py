# The worked example of the task, run on your own code: three steps of one parameter.
import torch

import grader

parameter, gradients = torch.tensor([1.0]), torch.tensor([[0.5], [-0.5], [0.1]])
given = [[gradient] for gradient in gradients]
history, _ = run_steps([{"params": [parameter]}], given, lr=0.1, weight_decay=0.5)
grader.show(
    torch.stack([params[0] for params in history]), title="each step", axes=("step", "parameter")
)
