# The worked example of the task, run on your own code.
import torch

import grader

net = SwiGLU(2, 3)
with torch.no_grad():
    net.W_gate.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    net.W_up.weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, -1.0]]))
    net.W_down.weight.copy_(torch.tensor([[1.0, 1.0, 1.0], [0.0, -2.0, 1.0]]))
grader.show(net(torch.tensor([[2.0, 1.0]])), title="net(x)")
