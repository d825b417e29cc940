# The worked example of the task, run on your own code.
import torch

import grader

attention = AdditiveAttention(d_query=1, d_key=2, num_hiddens=2, dropout=0.0)
with torch.no_grad():
    attention.W_q.weight.copy_(torch.tensor([[1.0], [-1.0]]))
    attention.W_k.weight.copy_(torch.eye(2))
    attention.w_v.weight.copy_(torch.tensor([[1.0, 1.0]]))
queries = torch.tensor([[[1.0], [-2.0]]])  # (batch, n_queries, d_query)
keys = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]])  # (batch, n_keys, d_key)
values = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]])  # (batch, n_keys, d_value)
output = attention(queries, keys, values)  # (batch, n_queries, d_value)
grader.show(output[0], title="output", axes=("token", "feature"))
