# The worked example of the task, run on your own code.
import torch

logits = torch.tensor([[[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [9.0, 0.0, 0.0]]])
tokens = torch.tensor([[1, 0, 2]])
perplexity(logits, tokens)
