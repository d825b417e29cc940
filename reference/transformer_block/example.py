# The worked example of the task, run on your own code.
import torch

import grader

block = TransformerBlock(d_model=2, num_heads=1, d_ff=3, context_length=2)
state = block.state_dict()
for name, values in state.items():
    if "norm" not in name and values.dtype.is_floating_point:
        values.zero_()
state["attention.W_value.weight"].copy_(torch.eye(2))
state["attention.out_proj.weight"].copy_(-3 * torch.eye(2))
state["feed_forward.linear1.weight"].copy_(torch.eye(3, 2))
state["feed_forward.linear2.weight"].copy_(2 * torch.eye(2, 3))
x = torch.tensor([[[1.0, 3.0], [5.0, 1.0]]])
grader.show(block(x)[0], title="output", axes=("token", "feature"))
