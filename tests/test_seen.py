"""What was seen in public code and in reports of others is judged as it should be, in both copies.

Each is the reference solution with a few edits, so that nothing else differs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus.programs import Program
from corpus.verdicts import Judge, students_copy

from grader.course.course import Course

RIGHT, WRONG = "right", "wrong"  # else the name of the mistake
Edits = list[tuple[str, str]]
ANGLES = "    angles = positions / base**exponents  # (context_length, n_pairs)\n"
SOFTMAX = "weights = torch.softmax(scores, dim=-1)"
COLUMNS = "encoding[:, 1::2] = angles.cos()[:, : d_model // 2]"
ATTENDED = "x = x + self.dropout(self.attention(self.norm1(x)))"
MASKED = "scores = X.masked_fill(~valid, -torch.inf)"
LAST = "return weights.masked_fill(~valid, 0.0)"
LONGEST = """longest = valid_lens.reshape(len(keys), -1).amax(dim=1, keepdim=True)  # (batch, 1)
            places = torch.arange(keys.shape[1], device=longest.device)  # (n_keys,)
            unused = (places >= longest).unsqueeze(-1)  # (batch, n_keys, 1)
"""
SEEN: list[tuple[str, str, str, Edits]] = [
    (
        *("histogram_transformer", "another optimizer and a higher rate", RIGHT),
        [("torch.optim.Adam(", "torch.optim.AdamW("), ("rate = 0.01", "rate = 0.02")],
    ),
    (
        *("scaled_dot_product_attention", "padding known by its weights", RIGHT),
        [(LONGEST, "unused = (weights == 0).all(dim=1).unsqueeze(-1)\n")],
    ),
    ("seq2seq_attention", "a slower rate", RIGHT, [("lr=0.01", "lr=0.003")]),
    (
        *("seq2seq_attention", "a first state in float32", RIGHT),
        [("source.new_zeros(len(drawn), decoder", "torch.zeros(len(drawn), decoder")],
    ),
    (
        *("masked_softmax", "less the logsumexp", RIGHT),
        [
            (SOFTMAX, "weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()"),
            ("return torch.softmax(X, dim=-1)", "return (X - X.logsumexp(-1, True)).exp()"),
        ],
    ),
    (
        *("rotary_embedding", "halves in bfloat16", WRONG),
        [
            (
                "dtype = torch.promote_types(x.dtype, torch.float32)",
                "dtype = torch.promote_types(x.dtype, torch.float32) if interleaved else x.dtype",
            )
        ],
    ),
    (
        *("rotary_embedding", "angles of pairs for halves", "angles_of_the_other_pairs"),
        [
            (
                "    cos, sin = angles.cos(), angles.sin()",
                "    if not interleaved:\n"
                "        full, half = angles.repeat_interleave(2, dim=-1), d_head // 2\n"
                "        partner = torch.cat([-x[..., half:], x[..., :half]], dim=-1)\n"
                "        return (x * full.cos() + partner * full.sin()).to(x.dtype)\n"
                "    cos, sin = angles.cos(), angles.sin()",
            )
        ],
    ),
    (
        *("positional_encoding", "a table of lists", WRONG),
        [
            (
                ANGLES,
                f"{ANGLES}    rows = []\n"
                "    for row in angles:\n"
                "        rows.append([float(angle) for angle in row])\n"
                "    angles = torch.tensor(rows).view_as(angles)\n",
            )
        ],
    ),
    (
        *("positional_encoding", "twice the column in a loop", "twice_the_column"),
        [
            (
                "    return encoding\n",
                "    place = torch.arange(context_length)\n"
                "    for i in range(0, d_model, 2):\n"
                "        encoding[:, i] = (place / base ** (2 * i / d_model)).sin()\n"
                "        if i + 1 < d_model:\n"
                "            angle = place / base ** (2 * (i + 1) / d_model)\n"
                "            encoding[:, i + 1] = angle.cos()\n"
                "    return encoding\n",
            )
        ],
    ),
    (
        *("positional_encoding", "whole exponents", "exponents_rounded_down"),
        [
            (COLUMNS, f"{COLUMNS}\n    column = torch.arange(d_model)"),
            (
                "    return encoding\n",
                "    angles = positions / base ** (2 * column / d_model // 1)\n"
                "    return torch.where(column % 2 == 0, angles.sin(), angles.cos())\n",
            ),
        ],
    ),
    (
        *("positional_encoding", "an assertion", "even_widths_only"),
        [(ANGLES, f"    assert d_model % 2 == 0\n{ANGLES}")],
    ),
    (
        *("self_attention", "a millionth more", WRONG),
        [
            (
                "return normalise(exponentials)",
                "return exponentials / (exponentials.sum(-1, True) + 1e-6)",
            )
        ],
    ),
    (
        *("online_softmax", "ten thousand below", "weak_filler"),
        [("scores.masked_fill(key > query, -torch.inf)", "scores.masked_fill(key > query, -1e4)")],
    ),
    (
        *("dictionary_lookup", "four axes at most", WRONG),
        [("    scores = Q @", "    if Q.dim() > 4:\n        raise RuntimeError\n    scores = Q @")],
    ),
    (
        *("dictionary_lookup", "weights transposed", "weights_transposed"),
        [("torch.softmax(scores / temp, dim=-1)", "torch.softmax(scores / temp, dim=-1).mT")],
    ),
    (
        *("kv_cache", "a table of the whole context", "square_mask"),
        [
            (
                "x.new_ones(n_tokens, n_keys)",
                "x.new_ones(self.context_length, self.context_length)",
            ),
            (
                "pairs.tril(diagonal=n_cached).bool()",
                "pairs.tril().bool()[n_cached:n_keys, :n_keys]",
            ),
        ],
    ),
    (
        *("feed_forward", "the ReLU at the end", "activation_moved_to_the_end"),
        [
            ("torch.relu(self.linear1(x))", "self.linear1(x)"),
            ("output = self.linear2(hidden)", "output = torch.relu(self.linear2(hidden))"),
        ],
    ),
    (
        *("multi_head_attention", "a ReLU on all three", "activation_on_projections"),
        [(f"self.W_{part}(x)", f"self.W_{part}(x).relu()") for part in ("query", "key", "value")],
    ),
    (
        *("multi_head_attention", "a seed in forward", "same_in_each_call"),
        [
            (
                "        batch, n_tokens, _ =",
                "        torch.manual_seed(0)\n        batch, n_tokens, _ =",
            )
        ],
    ),
    (
        *("transformer_block", "x and x", "added_to_itself"),
        [(ATTENDED, "h = self.dropout(self.attention(self.norm1(x)))\n            x = x + x")],
    ),
    (
        *("transformer_block", "the norm and x inside", "norm_added_to_x_inside"),
        [("self.attention(self.norm1(x))", "self.attention(self.norm1(x) + x)")],
    ),
    (
        *("transformer_block", "post-norm without sums", "no_residual_in_post_norm"),
        [
            ("x + self.dropout(self.attention(x))", "self.dropout(self.attention(x))"),
            ("x + self.dropout(self.feed_forward(x))", "self.dropout(self.feed_forward(x))"),
        ],
    ),
    (
        *("layer_norm", "a square", "square_for_root"),
        [("torch.sqrt(var + self.eps)", "(var + self.eps) ** 2")],
    ),
    (
        *("masked_softmax", "exponentials times the mask", "softmax_without_maximum"),
        [
            (
                SOFTMAX,
                "e = X.exp() * valid\n    weights = e / e.sum(-1, keepdim=True).clamp(min=1e-30)",
            )
        ],
    ),
    (
        *("masked_softmax", "zeroed and rescaled", "zeroed_scores_rescaled"),
        [
            (MASKED, "scores = X * valid"),
            (
                LAST,
                "kept = weights * valid\n    return kept / kept.sum(-1, True).clamp(min=1e-9)",
            ),
        ],
    ),
]


@pytest.fixture(scope="module")
def copy(course: Course) -> Iterator[Course]:
    """What students have."""
    with tempfile.TemporaryDirectory() as folder:
        yield students_copy(course, Path(folder))


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("exercise", "what", "expected", "edits"),
    SEEN,
    ids=[f"{name}: {what}" for name, what, *_ in SEEN],
)
def test_it_is_judged_so(
    exercise: str, what: str, expected: str, edits: Edits, course: Course, copy: Course
) -> None:
    text = course[exercise].read("solution.py")
    for before, after in edits:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    program = Program("seen", exercise, what, "", text)
    (found,) = Judge(course).judge_here([program]).values()
    (practised,) = Judge(course, copy).judge_here([program]).values()
    assert found.is_done == practised.is_done == (expected == RIGHT), found
    assert found.explanations == practised.explanations
    assert expected in (RIGHT, WRONG) or found.explanations == ((expected,),)
