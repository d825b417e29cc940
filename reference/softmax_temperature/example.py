# The worked example of the task, run on your own code: a row of weights for each temperature.
import torch

import grader

scores = torch.tensor([1.0, 2.0, 3.0])
rows = [tempered_softmax(scores, temperature) for temperature in (0.1, 0.5, 1.0, 2.0, 10.0)]
weights = torch.stack(rows)
print("entropy:", [round(value, 4) for value in entropy(weights).tolist()])

# Random queries and keys: the variance of their products, before and after the scale.
for d_key in (4, 16, 64, 256):
    queries, keys = torch.randn(10_000, d_key), torch.randn(10_000, d_key)
    scaled = scale(queries, d_key)  # a product with scaled queries is a scaled product
    variances = (variance_of_products(queries, keys), variance_of_products(scaled, keys))
    print(f"d_key {d_key}: variance", [round(value.item(), 2) for value in variances])

grader.show(weights, title="weights")
