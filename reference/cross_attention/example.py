# The worked example of the task, run on your own code.
import torch

import grader

attention = CrossAttention(2, 2, 2, 0.0, 1)
identity = {f"{name}.weight": torch.eye(2) for name in ("W_query", "W_key", "W_value", "out_proj")}
attention.load_state_dict({**identity, "out_proj.bias": torch.zeros(2)})
x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
context = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [5.0, 5.0]]])
output = attention(x, context, torch.tensor([[True, True, True, False]]))
grader.show(output, title="output", axes=("token", "feature"))
