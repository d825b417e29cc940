# The worked example of the task, run on your own code.
import torch

import grader

Q = torch.tensor([[0.4685, 0.9785]])
K = torch.tensor([[0.5539, 0.7239], [0.4111, 0.3878], [0.2376, 0.1264]])
# With the identity as values, the output is the weights.
grader.show(attention(Q, K, torch.eye(3)))
