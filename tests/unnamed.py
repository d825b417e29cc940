"""Mistakes that are in no catalogue, each in several spellings around correct programs of others.

A mistake changes what goes into a correct program, or what comes out of it. So each spelling of it
can be put around each correct program, which makes many programs with one mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corpus.programs import STYLES, styled

from grader.course.course import Course

FUNCTION = """

_right_{name} = {name}


def {name}({arguments}):
    right = _right_{name}
    import torch
    {body}
"""
MODULE = """

_Right{name} = {name}


class {name}(_Right{name}):
    def forward(self, x):
        right = super().forward
        import torch
        {body}
"""
FORMS = {  # by exercise: what is wrapped, and its arguments if it is a function
    "masked_softmax": ("masked_softmax", "X, valid_lens"),
    "dictionary_lookup": ("attention", "Q, K, V, temp=1.0"),
    "causal_attention": ("CausalAttention", ""),
    "layer_norm": ("LayerNorm", ""),
    "feed_forward": ("FeedForward", ""),
    "multi_head_attention": ("MultiHeadAttention", ""),
    "transformer_block": ("TransformerBlock", ""),
}
W, A, X = "right(X, valid_lens)", "right(Q, K, V, temp)", "right(x)"
MISTAKES: dict[str, dict[str, tuple[str, ...]]] = {  # by exercise and mistake: its spellings
    "masked_softmax": {
        "squared": (f"return {W} ** 2", f"w = {W}; return w * w", f"return {W}.pow(2)"),
        "keys_reversed": (f"return {W}.flip(-1)", f"w = {W}; n = w.shape[-1] - 1; "
                          "return torch.stack([w[..., n - i] for i in range(n + 1)], -1)"),
        "warm": ("return right(X / 2, valid_lens)", "return right(0.5 * X, valid_lens)",
                 "return right(X - X / 2, valid_lens)"),
        "root": (f"return {W}.sqrt()", f"return {W} ** 0.5"),
        "complement": (f"return 1 - {W}", f"w = {W}; return torch.ones_like(w) - w",
                       f"return -({W} - 1)"),
    },
    "dictionary_lookup": {
        "temp_squared": ("return right(Q, K, V, temp * temp)", "return right(Q, K, V, temp ** 2)"),
        "centred": (f"o = {A}; return o - o.mean(-1, keepdim=True)",
                    f"o = {A}; return o - o.sum(-1, keepdim=True) / o.shape[-1]"),
        "plus_one": (f"return {A} + 1", "return right(Q, K, V + 1, temp)"),
        "opposite": ("return right(-Q, K, V, temp)", "return right(Q, -K, V, temp)",
                     "return right(Q * -1, K, V, temp)"),
        "accumulated": (f"return {A}.cumsum(-1)", f"o = {A}; return torch.stack("
                        "[o[..., :i + 1].sum(-1) for i in range(o.shape[-1])], -1)"),
    },
    "causal_attention": {
        "nine_tenths": (f"return {X} * 0.9", f"o = {X}; return o - 0.1 * o",
                        f"return {X} * 9 / 10"),
        "tanh": (f"return torch.tanh({X})", f"return 2 * torch.sigmoid(2 * {X}) - 1"),
        "tokens_reversed": (f"return {X}.flip(1)",
                            f"o = {X}; return o[:, list(range(o.shape[1]))[::-1]]"),
        "twice_as_large": ("return right(x * 2)", "return right(x + x)"),
        "over_time": (f"return {X}.cumsum(1)", f"o = {X}; return torch.stack("
                      "[o[:, :i + 1].sum(1) for i in range(o.shape[1])], 1)"),
    },
    "layer_norm": {
        "absolute": (f"return {X}.abs()", f"o = {X}; return o * o.sign()",
                     f"o = {X}; return torch.where(o < 0, -o, o)"),
        "clamped": (f"return {X}.clamp(-1, 1)", f"return {X}.clip(max=1).clip(min=-1)"),
        "rolled": (f"return {X}.roll(1, -1)",
                   f"o = {X}; return torch.cat([o[..., -1:], o[..., :-1]], -1)"),
        "cubed": (f"return {X} ** 3", f"o = {X}; return o * o * o"),
        "halves_swapped": (f"o = {X}; n = o.shape[-1] // 2; return o.roll(n, -1)",
                           f"o = {X}; n = o.shape[-1] - o.shape[-1] // 2; "
                           "return torch.cat([o[..., n:], o[..., :n]], -1)"),
    },
    "feed_forward": {
        "positive": (f"return torch.relu({X})", f"return {X}.clamp(min=0)"),
        "residual": (f"return {X} + x", f"return x + {X}", f"return torch.add(x, {X})"),
        "weights": (f"return torch.softmax({X}, -1)",
                    f"e = {X}.exp(); return e / e.sum(-1, keepdim=True)"),
        "negated": (f"return -{X}", f"return {X} * -1", f"return 0 - {X}"),
    },
    "multi_head_attention": {
        "features_reversed": (f"return {X}.flip(-1)",
                              f"o = {X}; return o[..., list(range(o.shape[-1]))[::-1]]"),
        "one_more": (f"return {X} + 1", f"return 1 + {X}"),
        "soft_sign": (f"o = {X}; return o / (1 + o.abs())",
                      f"return torch.nn.functional.softsign({X})"),
        "mean_over_tokens": (f"o = {X}; return o.mean(1, keepdim=True).expand_as(o)",
                             f"o = {X}; return o.sum(1, keepdim=True) / o.shape[1] + 0 * o"),
    },
    "transformer_block": {
        "input_removed": (f"return {X} - x", f"return -x + {X}"),
        "averaged_with_input": (f"return ({X} + x) / 2", f"return 0.5 * {X} + 0.5 * x"),
    },
}  # fmt: skip


@dataclass(frozen=True)
class Spelled:
    """A program with one mistake."""

    exercise: str
    mistake: str
    text: str


def programs(course: Course, *exercises: str) -> Iterator[Spelled]:
    """Yield every spelling of every mistake around every correct program."""
    for exercise in exercises or FORMS:
        for right in correct(course, exercise):
            for mistake, bodies in MISTAKES[exercise].items():
                for body in bodies:
                    yield Spelled(exercise, mistake, right + wrapped(exercise, body))


def correct(course: Course, exercise: str) -> list[str]:
    """Return correct programs for an exercise, by several authors."""
    others = (styled(style)[exercise] for style in STYLES)
    return [course[exercise].read("solution.py"), *others]


def wrapped(exercise: str, body: str) -> str:
    """Return the lines that put a mistake around a correct program."""
    name, arguments = FORMS[exercise]
    if arguments:
        return FUNCTION.format(name=name, arguments=arguments, body=body)
    return MODULE.format(name=name, body=body)
