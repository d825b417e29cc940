# The worked example of the task, run on your own code; then the same with a larger eps.
import torch

import grader

x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
# gamma is still 1 and beta 0, so this is x_hat.
rows = [LayerNorm(4, eps=eps)(x) for eps in (0.5, 12.5)]
grader.show(torch.cat(rows), title="x_hat with eps 0.5 and 12.5", axes=("eps", "feature"))
