# The worked example of the task, run on your own code.
import torch

import grader

logits = torch.tensor([[2.0, 1.0, 0.0, -1.0], [0.0, 3.0, 1.0, 2.0], [1.0, 1.5, 2.5, 0.0]])
gates, experts = route(logits, 2)
grader.show(gates, title="gates")
