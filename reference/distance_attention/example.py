# The worked example of the task, run on your own code.
import torch

import grader

attention = DistanceAttention(dropout=0.0)
queries = torch.tensor([[[0.0, 0.0], [2.0, 1.0]]])  # (batch, n_queries, d)
keys = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])  # (batch, n_keys, d)
values = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]])  # (batch, n_keys, d_value)
output = attention(queries, keys, values)  # (batch, n_queries, d_value)
grader.show(output[0], title="output", axes=("token", "feature"))
