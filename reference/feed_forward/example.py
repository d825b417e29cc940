# The worked example of the task, run on your own code.
import torch

import grader

net = FeedForward(2, 3)
with torch.no_grad():
    net.linear1.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    net.linear1.bias.copy_(torch.tensor([0.0, 1.0, -5.0]))
    net.linear2.weight.copy_(torch.tensor([[1.0, 1.0, 1.0], [0.0, -2.0, 1.0]]))
    net.linear2.bias.copy_(torch.tensor([0.5, 1.0]))
grader.show(net(torch.tensor([[2.0, 1.0]])), title="net(x)")
