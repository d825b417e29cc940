# The worked example of the task, run on your own code: a row for each temperature.
import torch

import grader

scores = torch.tensor([1.0, 2.0, 3.0])
rows = [tempered_softmax(scores, temperature) for temperature in (0.1, 0.5, 1.0, 2.0, 10.0)]
weights = torch.stack(rows)  # (temperatures, n_keys)
table = torch.cat([weights, entropy(weights).unsqueeze(1)], dim=1)
grader.show(table, title="three weights and their entropy")
