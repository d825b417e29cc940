# The worked example of the task, run on your own code: the third key is padding.
import torch

import grader

queries = torch.tensor([[[2.0, 0.0, 0.0, 0.0]]])
keys = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [9.0, 0.0, 0.0, 0.0]]])
values = torch.tensor([[[10.0, 0.0], [0.0, 10.0], [torch.nan, torch.nan]]])
attention = DotProductAttention(0.0)
output = attention(queries, keys, values, torch.tensor([2]))
row = torch.cat([attention.attention_weights, output], dim=-1)[0]
grader.show(row, title="three weights, then the output")
