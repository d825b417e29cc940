r"""# Mixture of experts

A feed-forward network uses all of its parameters for every token. A mixture
of experts has many such networks, and a router that sends each token to
top_k of them. So a model can have more parameters without more work.

    logits        = router(x)                     one for each expert
    gates         = softmax over the top_k largest logits
    output        = sum over the chosen experts of gate * expert(x)

A router that always chose the same experts would leave the others untrained.
A loss that is added to the model's own makes it use all of them:

    loss = num_experts * sum over experts e of f[e] * P[e]

    f[e]   the share of expert e in all choices: n tokens make n * top_k
    P[e]   the mean over the tokens of softmax(logits)[e], over all experts

If all experts are chosen equally often, the loss is 1 for any top_k.

Write

    route(logits, top_k)

    logits   (..., num_experts)      one or more leading axes
    returns  gates, experts          (..., top_k) each: the weights, in the
                                     dtype of logits, and the indices of the
                                     experts, with the largest logit first

    load_balance_loss(logits, top_k)

    logits   (..., num_experts)      of all tokens, over all leading axes
    returns  a tensor without axes   dtype of logits

    MixtureOfExperts(d_model, d_ff, num_experts, top_k)     an nn.Module

    router   nn.Linear   d_model -> num_experts, no bias
    experts  nn.ModuleList of num_experts SwiGLU(d_model, d_ff)

    forward(x)
    x        (..., d_model)          one or more leading axes, usually
                                     (batch, n_tokens, d_model)
    returns  output, loss            (..., d_model) in the dtype of x, and the
                                     load_balance_loss of all tokens

SwiGLU is your own, from the exercise swiglu.

Requirements
  - ValueError, if top_k is less than 1 or greater than num_experts: in both
    functions, and in MixtureOfExperts when it is made or when it is called.
  - Every token gets all of its experts, however many tokens choose the same
    ones; tokens do not affect each other.
  - An expert computes only the tokens that chose it: all experts together get
    n * top_k rows. An expert that no token chose is no problem.
  - Nothing differs in training mode: no noise, no dropout.
  - Gradients reach x, the experts, and the router: through the gates and
    through P. The share f is a count and has no gradient.
  - The loss is computed in float32 at least and cast once, at the end. The
    module supports .to(dtype), including bfloat16.
  - x and logits may be views that are not contiguous. They are not modified.
  - Python may loop over experts and over the top_k places, and over nothing
    else. Logits of a token are never equal in the tests.

Example

    logits = tensor([[2., 1., 0., -1.], [0., 3., 1., 2.], [1., 1.5, 2.5, 0.]])
    gates, experts = route(logits, 2)
    gates   = tensor([[0.7311, 0.2689], [0.7311, 0.2689], [0.7311, 0.2689]])
    experts = tensor([[0, 1], [1, 3], [2, 1]])

    f    = [1/6, 3/6, 1/6, 1/6]
    load_balance_loss(logits, 2) = 1.1559

Write it by hand. These names of torch are not accepted here: _grouped_mm,
scaled_grouped_mm.

What is new: More parameters without more work: each token uses only a few
of them.

From: Switch Transformers (2021)
"""

import torch
from swiglu import SwiGLU
from torch import Tensor, nn
from torch.nn import functional as F


def route(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """Return the gates and the indices of the chosen experts, (..., top_k) each.

    logits are (..., num_experts). Raises ValueError for a top_k outside 1 ... num_experts.
    """
    raise NotImplementedError("fill in mixture_of_experts")


def load_balance_loss(logits: Tensor, top_k: int) -> Tensor:
    """Return num_experts times the sum of f * P, of logits (..., num_experts); 1 if balanced."""
    raise NotImplementedError("fill in mixture_of_experts")


class MixtureOfExperts(nn.Module):
    """Feed-forward networks of which each token uses the top_k that a router chooses."""

    def __init__(self, d_model: int, d_ff: int, num_experts: int, top_k: int) -> None:
        super().__init__()
        raise NotImplementedError("fill in mixture_of_experts")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (..., d_model) to an output of the same shape, and the loss of all tokens."""
        raise NotImplementedError("fill in mixture_of_experts")
