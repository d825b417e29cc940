"""Code that runs in a worker, and a suite's access to it."""

from __future__ import annotations

from typing import Any

import torch

from grader.sandbox import wire
from grader.sandbox.host.connection import Subject, TimeLimits, WorkerConnection
from grader.sandbox.host.proxies import RemoteCode, Student

CODE = """
import os
import torch
import torch.nn.functional as F
from torch import nn

def softmax(x): return torch.softmax(x, dim=-1)
def broken_softmax(x): return torch.softmax(x.detach(), dim=-1) * x / x.detach()
def both(pair, named): return {"sum": pair[0] + named["b"], 7: [pair[1], None]}
def cut(x): return x.detach() * 2
def double_in_place(x): return x.mul_(2)
def double_data(x): x.data.mul_(2); return x
def reshape(x): x.unsqueeze_(0); return x
def grow(entries): entries[1].append(0)
def replace(entries): entries[3] = torch.ones(2)
def reorder(entries): entries[1] = entries.pop(1)
def nest(entries): entries[3][0] = entries
def size(entries): return len(entries)
def noise(n): return torch.rand(n)
def strides(x): return list(x.stride())
def is_leaf(x): return x.is_leaf, x.requires_grad
def grad_mode(): return torch.is_grad_enabled()
def environment(): return dict(os.environ)
def norm(x): return getattr(F, "layer" + "_norm")(x, x.shape[-1:])
def attend(x): return F.multi_head_attention_forward
def keyword(a, *, b=1): return a - b
def fail(): return helper()
def helper(): raise LookupError("in the helper")
class Odd(ValueError): pass
def odd(): raise Odd("a kind of ValueError")
class Model(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out)
        self.register_buffer("mask", torch.ones(d_out))
        self.drop = nn.Dropout(0.5)
        self.size = (d_in, d_out)
    def forward(self, x): return self.drop(self.linear(x)) * self.mask
"""
LIMITS = TimeLimits(60, 600)


def code_at(
    connection: WorkerConnection,
    text: str = CODE,
    *,
    limits: TimeLimits = LIMITS,
    forbidden: tuple[str, ...] = (),
) -> RemoteCode:
    """A text in a worker, with what a grader asks about it."""
    sources = {"m": wire.Source("m.py", text)}
    return RemoteCode(connection, Subject("m", "m", sources, limits, forbidden))


def student_at(connection: WorkerConnection, text: str = CODE) -> Any:
    """A text in a worker, as the tests of a suite see it."""
    return Student(code_at(connection, text))


def doubles(*shape: int) -> torch.Tensor:
    """The same random numbers each time."""
    generator = torch.Generator().manual_seed(3)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)
