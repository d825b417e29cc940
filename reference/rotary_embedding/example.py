# The worked example of the task, run on your own code.
import torch

import grader

x = torch.tensor([1.0, 0.0, 1.0, 0.0]).repeat(3, 1, 1)  # (n_tokens, num_heads, d_head)
turned = rotate(x, torch.arange(3), base=100.0)  # (n_tokens, num_heads, d_head)
grader.show(turned[:, 0], title="turned")
