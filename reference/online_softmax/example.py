# The worked example of the task, run on your own code, with two sizes of a tile.
import torch

import grader

Q = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])  # (n_queries, d_key)
K = torch.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 3.0]])  # (n_keys, d_key)
V = torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])  # (n_keys, d_value)
outputs = [tiled_attention(Q, K, V, tile) for tile in (2, 1)]  # (n_queries, d_value) each
grader.show(torch.cat(outputs, dim=1), title="with tile 2, then 1", axes=("token", "feature"))
