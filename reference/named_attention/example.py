# The worked example of the task, run on your own code: the axes of the key in both orders.
import torch

import grader

query = torch.tensor([[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]])  # (query, key)
key = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])  # (seq, key)
value = torch.tensor([[1.0, 3.0, 0.0], [2.0, 4.0, 1.0]])  # (seq, val)

outputs = []
for named_key in ((key, ("seq", "key")), (key.T, ("key", "seq"))):
    output, names = attend((query, ("query", "key")), named_key, (value, ("seq", "val")))
    outputs.append(output if tuple(names) == ("query", "val") else output.T)
grader.show(torch.stack(outputs))  # two tables of (query, val), which should be equal
