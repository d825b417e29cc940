# exercise: feed_forward
import logging
from functools import cached_property

import torch
from torch import nn

logger = logging.getLogger(__name__)

ACT2FN = {"relu": nn.functional.relu, "gelu": nn.functional.gelu, "tanh": torch.tanh}


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0, hidden_act="relu", chunk_size_feed_forward=0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.hidden_act = hidden_act
        if chunk_size_feed_forward:
            logger.warning("chunking is not supported here")

    @cached_property
    def intermediate_act_fn(self):
        return ACT2FN[self.hidden_act]

    def intermediate(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.intermediate_act_fn(self.linear1(hidden_states))

    def output(self, hidden_states: torch.Tensor) -> torch.Tensor:
        # no residual and no norm: they belong to the block
        return self.linear2(self.dropout(hidden_states))

    def feed_forward_chunk(self, attention_output):
        intermediate_output = self.intermediate(attention_output)
        layer_output = self.output(intermediate_output)
        return layer_output

    def forward(self, x):
        return self.feed_forward_chunk(x)
