# The worked example of the task, run on your own code.
import torch

import grader

model = TinyGPT(vocab=3, d_model=2, num_heads=1, num_layers=1, context_length=2, dropout=0.0)
state = model.state_dict()
for name, values in state.items():
    if "norm" not in name and values.dtype.is_floating_point:
        values.zero_()
state["token_embedding.weight"].copy_(torch.tensor([[1.0, 2.0], [3.0, 1.0], [0.0, 2.0]]))
state["position_embedding.weight"].copy_(torch.tensor([[0.0, 1.0], [2.0, 0.0]]))
state["blocks.0.attention.W_value.weight"].copy_(torch.eye(2))
state["blocks.0.attention.out_proj.weight"].copy_(3 * torch.eye(2))
written = generate(model, torch.tensor([[0], [1]]), 3, temperature=0)
grader.show(written.double(), title="written after 0 and after 1")
grader.show(model(torch.tensor([[0, 1]]))[0], title="logits", axes=("token", "next token"))
