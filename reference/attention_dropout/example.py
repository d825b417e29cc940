# The worked example of the task, run on your own code: one row, dropped anew in each draw.
import torch

import grader

weights = torch.tensor([0.1, 0.2, 0.3, 0.4])
draws = drop(weights.repeat(10_000, 1), 0.5, True)  # (draws, n_keys)
print("mean of each weight over 10,000 draws:", [round(w, 2) for w in draws.mean(0).tolist()])
print("evaluation:", drop(weights, 0.5, False).tolist())
grader.show(draws[:5], title="five draws at rate 0.5")
