# The worked example of the task, run on your own code.
import torch

import grader

attention = BilinearAttention(d_query=2, d_key=4, dropout=0.0)
with torch.no_grad():
    attention.M.copy_(torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, -1.0]]))
queries = torch.tensor([[[1.0, 2.0]]])  # (batch, n_queries, d_query)
keys = [[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]]
keys = torch.tensor(keys)  # (batch, n_keys, d_key)
values = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]])  # (batch, n_keys, d_value)
output = attention(queries, keys, values)  # (batch, n_queries, d_value)
grader.show(output[0], title="output", axes=("token", "feature"))
