# The worked example of the task, run on your own code, and two more sequences.
import torch

import grader

model = CountingTransformer(vocab=3, length=6, d_model=4)
set_weights(model)
tokens = torch.tensor([[2, 0, 2, 1, 2, 0], [1, 1, 1, 1, 1, 1], [0, 0, 1, 2, 2, 2]])
counts = model(tokens).argmax(dim=-1)  # (batch, n_tokens)
grader.show(counts.double(), title="counts", axes=("sequence", "token"))
