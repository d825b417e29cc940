r"""# Low-rank adaptation

Fine-tuning changes all weights of a model. Low-rank adaptation (LoRA) freezes
them, and learns for chosen linear layers a change that is the product of two
thin matrices. B starts at zeros, so the model starts as it was.

    output = linear(x) + alpha / r * dropout(x) A^T B^T
    merged weight = W + alpha / r * B A

Write

    LowRankLinear(linear, r, alpha, dropout=0.0)        an nn.Module

    linear   nn.Linear d_in -> d_out, kept under this name; none of its
             parameters is trained
    r        the rank, 1 or more
    A        (r, d_in)          parameter, initially random
    B        (d_out, r)         parameter, initially zeros

    forward(x)
    x        (..., d_in)        one or more leading axes
    returns  (..., d_out)       dtype of x

    merge()      adds the change to linear.weight
    unmerge()    takes it out again

    adapt(model, names, r, alpha)

    model    an nn.Module, which is changed in place
    names    a list of texts. A name stands for each linear layer with this
             name in model.named_modules(), and for each whose name ends in
             "." and this: "up" is first.up and second.up.
    returns  how many numbers of the model are trained now

adapt puts a LowRankLinear with no dropout around each of those layers, which
keeps its weights, and freezes all other parameters of the model.

Your file also has make_model(d_in, d_hidden, d_out), a small model to try
adapt on. It is complete; leave it as it is.

Requirements
  - Dropout acts on the input of A alone. In training, each number is set to 0
    with probability `dropout` and divided by 1 - dropout otherwise. In eval
    mode nothing is dropped.
  - While the change is merged, forward does not add it a second time: in eval
    mode the output is the same before and after merge, up to rounding.
  - merge of a merged layer does nothing, and neither does unmerge of one that
    is not merged. Both can be called in turn as often as you like; A and B do
    not change in between.
  - A and B have the dtype of linear's weight. The layer supports .to(dtype),
    including bfloat16.
  - ValueError, if r is less than 1, or if a name stands for no linear layer.
  - Gradients reach x, A and B. x may be a view that is not contiguous. It is
    not modified.
  - No Python loop runs over batch or tokens.

Example

    linear.weight = [[1., 2., 3.], [4., 5., 6.]], no bias
    layer = LowRankLinear(linear, r=1, alpha=4)
    A = [[1., 0., -1.]]
    B = [[2.], [1.]]

    x             = tensor([1., 1., 2.])
    linear(x)     = tensor([9., 21.])
    layer(x)      = tensor([1., 17.])            9 - 4 * 2,  21 - 4 * 1
    merged weight = [[9., 2., -5.], [8., 5., 2.]]

What is new: A trained model learns a new task by changing few numbers.

From: LoRA: Low-Rank Adaptation of Large Language Models (2021)
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn


class LowRankLinear(nn.Module):
    """A frozen linear layer, and a trained change of its weight of rank r at most."""

    def __init__(self, linear: nn.Linear, r: int, alpha: float, dropout: float = 0.0) -> None:
        super().__init__()
        raise NotImplementedError("fill in low_rank_adaptation")

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_in) to (..., d_out)."""
        raise NotImplementedError("fill in low_rank_adaptation")

    @torch.no_grad()
    def merge(self) -> None:
        """Add the change to the weight, unless it is in there."""
        raise NotImplementedError("fill in low_rank_adaptation")

    @torch.no_grad()
    def unmerge(self) -> None:
        """Take the change out of the weight, if it is in there."""
        raise NotImplementedError("fill in low_rank_adaptation")


def adapt(model: nn.Module, names: list[str], r: int, alpha: float) -> int:
    """Put a LowRankLinear around each linear layer with one of the names, and freeze the rest.

    Returns how many numbers are trained. Raises ValueError if a name stands for no linear layer.
    """
    raise NotImplementedError("fill in low_rank_adaptation")


def make_model(d_in: int, d_hidden: int, d_out: int) -> nn.Sequential:
    """Return a model with the linear layers first.up, first.down, second.up, second.down, head."""

    def part() -> nn.Sequential:
        up, down = nn.Linear(d_in, d_hidden), nn.Linear(d_hidden, d_in)
        return nn.Sequential(OrderedDict(up=up, act=nn.PReLU(), down=down))

    head = nn.Linear(d_in, d_out)
    return nn.Sequential(OrderedDict(first=part(), second=part(), head=head))
