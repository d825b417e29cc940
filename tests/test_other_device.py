"""What a module leaves on the CPU is found on any machine, and right code is let be."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from remote_code import student_at

from grader.errors import Mismatch
from grader.sandbox.host.connection import WorkerConnection
from grader.sandbox.worker.other_device import move
from grader.testing import assert_moves

MODULE = """
import functools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


ALL = torch.ones(9, 9).tril()

class Holds:
    def __init__(self, tensor):
        self.tensor = tensor

@functools.lru_cache
def mask_of(n, device="cpu"):
    return torch.ones(n, n, device=device).tril()

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_key = nn.Linear(4, 4)
        self.recurrent = nn.GRU(4, 4, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.positions = nn.Embedding(9, 4)
        self.register_buffer("buffer", torch.ones(9, 9).tril())
        self.kept, self.listed, self.mask = torch.ones(9, 9).tril(), {1: [torch.ones(4)]}, None
        self.also, self.view = [self.W_key.weight], self.buffer[:5, :5]
        self.taken, self.object = torch.ones(9, 9).tril(), Holds(torch.ones(4))

    def forward(self, x):
        n = x.shape[1]
        scores = self.W_key(x) @ x.mT
        {forward}
"""
RIGHT = {
    "a_mask_where_x_is": "return torch.ones(n, n, device=x.device).tril() * scores",
    "a_mask_where_the_weights_are": "return self.W_key.weight.new_ones(n, n).tril() * scores",
    "a_mask_moved": "return torch.ones(n, n).tril().to(scores.device) * scores",
    "a_mask_moved_by_name": "return torch.ones(n, n).tril().to(str(x.device)) * scores",
    "a_mask_moved_to_x": "return torch.ones(n, n).tril().to(x) * scores",
    "a_mask_of_numpy_moved": "return torch.from_numpy(np.tri(n, dtype='f')).to(x.device) * scores",
    "a_row_at_a_time": "return torch.func.vmap(lambda row: row.relu() * 2)(scores)",
    "a_mask_of_the_type_of_x": "return torch.ones(n, n).tril().type_as(x) * scores",
    "a_mask_like_the_scores": "return torch.ones_like(scores).tril() * scores",
    "a_mask_of_a_list": "return torch.as_tensor([[1.0] * n] * n, device=x.device) * scores",
    "a_default_device": "with torch.device(x.device): return torch.ones(n, n).tril() * scores",
    "a_buffer": "return self.buffer[:n, :n] * scores",
    "an_attribute_that_is_moved": "return self.kept[:n, :n].to(x.device) * scores",
    "an_attribute_that_is_a_weight": "return x @ self.also[0]",
    "a_mask_kept_for_its_device": """if self.mask is None or self.mask.device != x.device:
            self.mask = torch.ones(n, n, device=x.device).tril()
        return self.mask * scores""",
    "an_attribute_that_the_move_takes_along": """return self.taken[:n, :n] * scores

    def _apply(self, function, *rest):
        self.taken = function(self.taken)
        return super()._apply(function, *rest)""",
    "a_mask_from_a_cache_for_the_device": "return mask_of(n, x.device) * scores",
    "a_question_of_the_values": "return scores.tril() if scores.tril().any() else scores",
    "a_single_number": "return torch.where(scores > 0, scores, torch.tensor(-torch.inf))",
    "indices_on_the_cpu": "return scores[:, torch.arange(n)] + x[torch.tensor([0])].sum()",
    "rows_copied": """out = torch.zeros(x.shape)
        for i in range(n):
            out[:, i] = (scores[:, i, None].softmax(-1) @ x)[:, 0]
        return out.to(x.device) + x""",
    "rows_stacked": "return torch.stack([row.softmax(-1) for row in scores]) @ x",
    "vmap": "return torch.func.vmap(lambda row: row.softmax(-1))(scores)",
    "a_module_made_here": "return nn.Linear(4, 2).to(x.device)(x)",
    "positions": "return self.positions(torch.arange(n, device=x.device)) + x",
    "modules_of_torch": "return self.attention(*[self.recurrent(x)[0]] * 3)[0]",
    "what_another_device_lacks": "torch.Generator(x.device); return x",
}
WRONG = {
    "a_mask_on_the_cpu": "return torch.ones(n, n).tril() * scores",
    "a_mask_of_the_dtype_alone": "return torch.ones(n, n).tril().to(x.dtype) * scores",
    "a_condition": "return torch.where(torch.ones(n, n).bool().tril(), scores, 0.0)",
    "a_mask_filled_in_place": "return scores.masked_fill_(torch.ones(n, n).bool().tril(), 0.0)",
    "cuda_or_cpu": """device = "cuda" if torch.cuda.is_available() else "cpu"
        return torch.ones(n, n, device=device).tril() * scores""",
    "an_attribute": "return self.kept[:n, :n] * scores",
    "an_attribute_in_containers": "return self.listed[1][0] * x",
    "an_attribute_indexed": "return self.kept[torch.arange(n, device=x.device)]",
    "a_view_of_a_buffer": "return self.view * scores",
    "an_object_of_another_kind": "return self.object.tensor * x",
    "a_global_mask": "return ALL[:n, :n] * scores",
    "a_mask_from_a_cache": "return mask_of(n) * scores",
    "only_in_training": "return torch.rand(n, n) * scores if self.training else scores",
    "only_in_evaluation": "return scores if self.training else torch.rand(n, n) * scores",
    "a_mask_kept_from_the_cpu": """if self.mask is None:
            self.mask = torch.ones(n, n, device=x.device)
        return self.mask * scores""",
    "a_mask_kept_from_before": """if self.mask is None:
            self.mask = torch.ones(n, n)
        return self.mask * scores""",
    "another_way_to_the_cpu": "return x.cpu() + x",
    "rows_on_the_cpu": """out = torch.zeros(x.shape)
        for i in range(n):
            out[:, i] = x[:, i]
        return out + x""",
    "a_mask_of_numpy": "return (torch.from_numpy(np.tri(n, dtype='f')) != 0) * scores",
    "a_mask_expanded": "return torch.ones(1, n, n).tril().expand_as(scores) * scores",
    "tensors_joined": "return torch.cat([torch.zeros(2, 1, 4), x], dim=1)",
    "vmap": "return torch.func.vmap(lambda row: torch.ones(n, n).tril() * row)(scores)",
    "positions": "return self.positions(torch.arange(n)) + x",
    "einsum": "return torch.einsum('ij,bjd->bid', torch.eye(n), x)",
    "a_first_state": "return self.recurrent(x, torch.zeros(1, 2, 4))[0]",
    "a_mask_for_a_module": "return self.attention(x, x, x, attn_mask=torch.zeros(n, n))[0]",
}


def module_of(forward: str) -> Any:
    """A module with this `forward`, in this process."""
    names: dict[str, Any] = {}
    exec(MODULE.replace("{forward}", forward), names)
    return names["Attention"]


def inputs() -> torch.Tensor:
    return torch.linspace(-1, 1, 40).view(2, 5, 4)


@pytest.mark.parametrize("forward", RIGHT.values(), ids=RIGHT)
def test_right_code_works_on_another_device(forward: str) -> None:
    assert_moves(module_of(forward), inputs())


@pytest.mark.parametrize("forward", WRONG.values(), ids=WRONG)
def test_a_tensor_left_on_the_cpu_is_named(forward: str) -> None:
    with pytest.raises(Mismatch, match=r"is given a tensor \(.*\) of \w+ on the CPU together with"):
        assert_moves(module_of(forward), inputs())


def test_a_mask_cached_for_each_device_outlives_the_module_that_made_it() -> None:
    make = module_of("return mask_of(n, x.device) * scores")
    for _ in range(2):
        assert_moves(make, inputs())


def test_what_a_module_left_on_the_cpu_is_there_for_the_next() -> None:
    make = module_of("return mask_of(n) * scores")
    for _ in range(2):
        with pytest.raises(Mismatch):
            assert_moves(make, inputs())


def test_nothing_is_computed_otherwise() -> None:
    for forward in RIGHT.values():
        module = module_of(forward)()
        with torch.no_grad():
            torch.manual_seed(1)
            expected = module(inputs())
            move(module)
            torch.manual_seed(1)
            with contextlib.suppress(RuntimeError):  # there is no generator elsewhere
                assert torch.equal(module(inputs()), expected)


@pytest.mark.parametrize("forward", ["a_mask_where_x_is", "what_another_device_lacks"])
def test_right_code_works_there_in_the_worker(connection: WorkerConnection, forward: str) -> None:
    student = student_at(connection, MODULE.replace("{forward}", RIGHT[forward]))
    assert_moves(student.Attention, inputs())


def test_a_tensor_left_on_the_cpu_is_named_in_the_worker(connection: WorkerConnection) -> None:
    student = student_at(connection, MODULE.replace("{forward}", WRONG["a_mask_on_the_cpu"]))
    with pytest.raises(Mismatch, match=r"mul is given a tensor \(5, 5\) of float32 on the CPU"):
        assert_moves(student.Attention, inputs())
