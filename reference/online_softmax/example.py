# The worked example of the task, run on your own code.
import torch

import grader

Q = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])  # (n_queries, d_key)
K = torch.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 3.0]])  # (n_keys, d_key)
V = torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])  # (n_keys, d_value)
output = tiled_attention(Q, K, V, tile=2)  # (n_queries, d_value)
grader.show(output, title="output", axes=("token", "feature"))
