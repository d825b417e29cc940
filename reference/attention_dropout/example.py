# The worked example of the task, run on your own code: each row is one draw of the same weights.
import torch

import grader

weights = torch.tensor([0.1, 0.2, 0.3, 0.4])
draws = drop(weights.repeat(10_000, 1), 0.5, True)  # (draws, n_keys)
table = torch.cat([draws[:5], draws.mean(0, keepdim=True)])
grader.show(table, title="five draws at rate 0.5, then the mean of 10,000")
