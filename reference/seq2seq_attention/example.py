# The worked example of the task, run on your own code.
import torch

import grader

decoder = AttentionDecoder(vocab=4, d_embed=2, d_decoder=3, d_encoder=5, d_hidden=2)
with torch.no_grad():
    for parameter in decoder.parameters():
        parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
targets = torch.tensor([[3, 1, 2]])  # (batch, n_target)
state = torch.tensor([[1.0, 0.0, -1.0]])  # (batch, d_decoder)
encoder_states = torch.eye(3, 5).unsqueeze(0)  # (batch, n_source, d_encoder)
logits, alignment = decoder(targets, state, encoder_states)
grader.show(alignment[0], title="alignment", axes=("query", "key"))
