"""Predictions and questions of the notebooks: the answers are computed, and no copy holds them."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isclose
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from commandline import Cli

import grader
from grader.commands.notebooks import notebooks
from grader.course.course import Course, load_course, load_public
from grader.course.questions import SEALED, LessonQuestion, normal
from grader.errors import CourseError, RequestError
from grader.jupyter import run_example


def numbers(module: torch.nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


def said(holds: bool) -> str:
    return "yes" if holds else "no"


def causal_by_tril(r: Any) -> bool:
    """Whether weights that are multiplied by `tril` and divided again are the causal ones."""
    torch.manual_seed(1)
    attention, x = r.CausalAttention(3, 4, 5, 0.0), torch.randn(1, 5, 3)
    scores = attention.W_query(x) @ attention.W_key(x).transpose(1, 2) / 2
    weights = torch.softmax(scores, dim=-1).tril()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return torch.allclose(attention(x), weights @ attention.W_value(x), atol=1e-6)


def share_of_two_in_four(r: Any) -> float:
    weights: torch.Tensor = r.masked_softmax(torch.zeros(1, 1, 4), None)
    return float(weights[0, 0, :2].sum())


def first_weight_beside(padded: float, r: Any) -> float:
    return float(r.masked_softmax(torch.tensor([[[1.0, 2.0, padded]]]), torch.tensor([2]))[0, 0, 0])


def first_step(r: Any) -> float:
    given = [[torch.tensor([1000.0])]]
    history, _ = r.run_steps([{"params": [torch.tensor([1.0])]}], given, lr=0.1, weight_decay=0.0)
    return 1 - float(history[0][0])


def gradient_of_b(r: Any) -> float:
    layer = r.LowRankLinear(torch.nn.Linear(3, 2), r=1, alpha=4)
    torch.nn.init.zeros_(layer.A)
    layer(torch.ones(1, 3)).sum().backward()
    return float(layer.B.grad.abs().max())


def spread_of_products(r: Any, d_key: int, spread: float) -> float:
    """The variance of products with a key whose numbers have this standard deviation."""
    torch.manual_seed(1)
    queries, keys = torch.randn(200_000, d_key), spread * torch.randn(200_000, d_key)
    return round(float(r.variance_of_products(queries, keys)))


def dots(r: Any) -> tuple[float, float]:
    rows = r.sinusoidal(20, 512).double()
    return float(rows[3] @ rows[7]), float(rows[10] @ rows[14])


def cache_numbers(r: Any) -> int:
    """How many numbers the cache of one layer holds, for 1000 tokens and 8 heads of size 64."""
    _, cache = r.CachedAttention(8, 512, 1000, 0.0, 8)(torch.zeros(1, 1000, 8))
    return sum(each.numel() for each in cache)


def returned(r: Any) -> int:
    """How many tokens come back if five guesses are all accepted."""
    rows = torch.full((6, 7), 1 / 7)
    guesses = torch.arange(5)
    return len(r.speculate(guesses, rows[:5], rows, torch.zeros(5), 0.5))


def same_as_scores(choices: dict[str, torch.Tensor], scores: torch.Tensor) -> str:
    """The letter of the choice whose numbers are those of `scores`; the shapes may differ."""
    (letter,) = (
        letter
        for letter, each in choices.items()
        if each.shape == scores.shape and torch.allclose(each, scores, atol=1e-4)
    )
    return letter


def form_of_v1(r: Any) -> str:
    v, x = r.SelfAttentionV1(3, 3), torch.randn(5, 3)
    q, k = v.W_query, v.W_key
    forms = {"a": q.T @ k, "b": q @ k.T, "c": q + k, "d": k @ q.T}
    return same_as_scores({a: x @ w @ x.T for a, w in forms.items()}, x @ q @ (x @ k).T)


def form_of_bilinear() -> str:
    w_q, w_k, x, y = torch.randn(3, 3), torch.randn(3, 3), torch.randn(3), torch.randn(3)
    forms = {"a": w_q @ w_k.T, "b": w_k.T @ w_q, "c": w_q.T @ w_k}
    return same_as_scores({a: x @ m @ y for a, m in forms.items()}, (w_q @ x) @ (w_k @ y))


def weights_of_equal_lengths(r: Any) -> str:
    q, k = torch.randn(1, 4, 3), torch.nn.functional.normalize(torch.randn(1, 5, 3), dim=-1)
    attention = r.DistanceAttention(0.0)
    attention(q, k, k)
    products = q @ k.transpose(1, 2)
    plain, scaled = torch.softmax(products, -1), torch.softmax(products / 3**0.5, -1)
    equal = torch.full_like(plain, 1 / 5)
    return same_as_scores({"a": plain, "b": scaled, "c": equal}, attention.attention_weights)


def idle_post_norm(r: Any) -> str:
    block = r.TransformerBlock(4, 2, 8, 5, norm_first=False)
    for layer in (block.attention.out_proj, block.feed_forward.linear2):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    x = torch.randn(1, 5, 4)
    choices = {"a": torch.zeros_like(x), "b": x, "c": block.norm2(block.norm1(x))}
    return same_as_scores(choices, block(x))


def place_of_the_key(r: Any) -> int:
    """Where a key has the score with a query at 110 that it has at 7 with one at 10."""
    q, k = torch.randn(1, 1, 8).double(), torch.randn(1, 1, 8).double()

    def score(query: int, key: int) -> float:
        turned = (r.rotate(a, torch.tensor([p])) for a, p in ((q, query), (k, key)))
        return float(next(turned).flatten() @ next(turned).flatten())

    return min(range(100, 120), key=lambda place: abs(score(110, place) - score(10, 7)))


def kept_for_each(r: Any) -> int:
    parameter = torch.nn.Parameter(torch.ones(10))
    optimizer = r.AdamW([parameter])
    parameter.grad = torch.ones(10)
    optimizer.step()
    kept = (each for each in optimizer.state[parameter].values() if isinstance(each, torch.Tensor))
    return sum(each.numel() for each in kept if each.numel() > 1) * 10**5


# What the references compute for a question, by its exercise and number.
COMPUTED: dict[tuple[str, int], Callable[[Any], object]] = {
    ("dictionary_lookup", 1): lambda r: (
        torch.tensor([0.25, 0.25, 0.5]) @ torch.tensor([4.0, 8, 10])
    ),
    ("masked_softmax", 1): share_of_two_in_four,
    ("masked_softmax", 2): lambda r: first_weight_beside(1, r) - first_weight_beside(1000, r),
    ("self_attention", 1): lambda r: r.scores_by_product(torch.randn(12, 3)).numel(),
    ("self_attention", 2): lambda r: said(
        torch.equal(w := r.softmax_stable(r.scores_by_product(torch.randn(6, 3))), w.T)
    ),
    ("softmax_temperature", 1): lambda r: spread_of_products(r, 16, 2.0),
    ("trainable_self_attention", 1): form_of_v1,
    ("bilinear_attention", 1): lambda r: form_of_bilinear(),
    ("distance_attention", 1): weights_of_equal_lengths,
    ("transformer_block", 1): idle_post_norm,
    ("rotary_embedding", 1): place_of_the_key,
    ("adamw", 2): kept_for_each,
    ("trainable_self_attention", 2): lambda r: torch.linalg.matrix_rank(
        (v := r.SelfAttentionV1(512, 64)).W_query.double() @ v.W_key.double().T
    ),
    ("scaled_dot_product_attention", 1): lambda r: round(spread_of_products(r, 64, 1.0) ** 0.5),
    ("scaled_dot_product_attention", 2): lambda r: r.DotProductAttention(0.0)(
        torch.randn(1, 5, 64), torch.randn(1, 7, 64), torch.randn(1, 7, 32)
    ).numel(),
    ("additive_attention", 2): lambda r: numbers(r.AdditiveAttention(3, 5, 4, 0.0)),
    ("bilinear_attention", 2): lambda r: (
        numbers(r.BilinearAttention(512, 512, 0.0)) / (2 * 64 * 512)
    ),
    ("attention_dropout", 1): lambda r: r.drop(torch.full((99,), 0.3), 0.25, True).max(),
    ("causal_attention", 1): lambda r: said(causal_by_tril(r)),
    ("causal_attention", 2): lambda r: (torch.ones(100, 100).tril() == 0).sum(),
    ("stacked_heads", 1): lambda r: r.split_weights(r.StackedHeads(512, 64, 4, 0.0, 8))[0].numel(),
    ("multi_head_attention", 1): lambda r: (
        numbers(r.MultiHeadAttention(512, 512, 4, 0.0, 16))
        - numbers(r.MultiHeadAttention(512, 512, 4, 0.0, 8))
    ),
    ("named_attention", 1): lambda r: len(
        r.contract(
            (torch.ones(2, 3, 4, 5), ("batch", "head", "query", "key")),
            (torch.ones(2, 3, 6, 5), ("batch", "head", "seq", "key")),
            "key",
        )[1]
    ),
    ("named_attention", 2): lambda r: r.attend(
        (torch.ones(2, 3, 4), ("head", "query", "key")),
        (torch.ones(2, 5, 4), ("head", "seq", "key")),
        (torch.ones(5, 6), ("seq", "val")),
    )[0].numel(),
    ("layer_norm", 1): lambda r: (
        r.LayerNorm(4, eps=1e-9)(10 * (x := torch.tensor([1.0, 2, 3, 6]))) / r.LayerNorm(4, 1e-9)(x)
    )[0],
    ("feed_forward", 2): lambda r: numbers(r.FeedForward(512, 2048)),
    ("transformer_block", 2): lambda r: (
        sum(
            each.numel() for each in r.TransformerBlock(8, 2, 32, 4).parameters() if each.dim() == 2
        )
        / 64
    ),
    ("positional_encoding", 1): lambda r: round(float(r.sinusoidal(9, 512)[5].square().sum()), 3),
    ("positional_encoding", 2): lambda r: said(isclose(*dots(r), rel_tol=1e-5)),
    ("kv_cache", 1): lambda r: 12 * cache_numbers(r),
    ("rotary_embedding", 2): lambda r: said(
        not torch.allclose(
            r.rotate(x := torch.randn(3, 2, 8), torch.arange(3)).norm(dim=-1), x.norm(dim=-1)
        )
    ),
    ("grouped_query_attention", 1): lambda r: (
        (g := r.GroupedQueryAttention(64, 64, 4, 0.0, 32, 8)).W_query.weight.numel()
        / g.W_key.weight.numel()
    ),
    ("grouped_query_attention", 2): lambda r: r.grouped_context(
        torch.ones(1, 12, 1, 1), torch.arange(4.0).view(1, 4, 1, 1)
    )[0, 7, 0, 0],
    ("tiny_gpt", 1): lambda r: (
        50257 * r.TinyGPT(3, 768, 1, 0, 2, 0.0).token_embedding.weight.shape[1]
    ),
    ("rms_norm", 1): lambda r: r.RMSNorm(4)(torch.full((4,), 3.0))[0],
    ("rms_norm", 2): lambda r: 65 * (numbers(r.LayerNorm(4096)) - numbers(r.RMSNorm(4096))),
    ("swiglu", 1): lambda r: 2 * 768 * 3072 / (numbers(r.SwiGLU(768, 1))),
    ("modern_block", 1): lambda r: (
        32
        * sum(
            each.numel()
            for each in r.RotaryAttention(8, 32 * 128, 4, 0.0, 32, 8)(torch.ones(1, 1, 8))[1]
        )
    ),
    ("mixture_of_experts", 2): lambda r: r.load_balance_loss(99 * torch.eye(8)[[3] * 5], 1),
    ("byte_pair_encoding", 2): lambda r: len(r.encode(b"aaaaa", [(97, 97)])),
    ("cross_entropy", 1): lambda r: round(
        float(r.cross_entropy(torch.zeros(1, 50), torch.tensor([7])).exp()), 3
    ),
    ("cross_entropy", 2): lambda r: round(
        float(
            r.cross_entropy(
                torch.tensor([[1 / 2, 1 / 2], [1 / 8, 7 / 8]]).log(), torch.tensor([0, 0])
            ).exp()
        ),
        4,
    ),
    ("adamw", 1): lambda r: round(first_step(r), 5),
    ("sampling", 1): lambda r: round(
        float(torch.minimum(p := torch.tensor([0.4, 0.3, 0.2, 0.1]), p.flip(0)).sum()), 5
    ),
    ("sampling", 2): returned,
    ("low_rank_adaptation", 1): lambda r: (
        (layer := r.LowRankLinear(torch.nn.Linear(4096, 4096), r=8, alpha=1)).A.numel()
        + layer.B.numel()
    ),
    ("low_rank_adaptation", 2): gradient_of_b,
    ("patch_embedding", 1): lambda r: r.patches(torch.zeros(1, 3, 224, 224), 16).shape[1] + 1,
    ("patch_embedding", 2): lambda r: (
        (
            r.patches(torch.zeros(1, 3, 224, 224), 8).shape[1]
            / r.patches(torch.zeros(1, 3, 224, 224), 16).shape[1]
        )
        ** 2
    ),
}


@pytest.fixture(scope="module")
def everything(references: dict[str, ModuleType]) -> SimpleNamespace:
    """All that the references define; no two define the same name."""
    return SimpleNamespace(**{k: v for each in references.values() for k, v in vars(each).items()})


def test_each_exercise_asks_for_a_prediction_and_something_at_the_end(course: Course) -> None:
    for exercise in course.exercises:
        assert exercise.predict, exercise.name
        assert 1 <= len(exercise.questions) <= 2, exercise.name
        assert [each.problem for each in exercise.questions if each.problem] == []


def test_the_worked_examples_run_on_the_solutions(
    course: Course, references: dict[str, ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    for exercise in course.exercises:
        value = run_example(exercise, exercise.example, vars(references[exercise.name]))
        assert value is not None, exercise.name
    assert "not written" not in capsys.readouterr().out


@pytest.mark.parametrize("place", COMPUTED, ids=lambda place: f"{place[0]}-{place[1]}")
def test_the_answer_is_what_the_reference_computes(
    place: tuple[str, int], course: Course, everything: SimpleNamespace
) -> None:
    name, number = place
    torch.manual_seed(2)
    computed = COMPUTED[place](everything)
    if isinstance(computed, torch.Tensor) and computed.is_floating_point():
        computed = round(computed.item(), 4)
    assert course[name].questions[number - 1].accepts(computed), computed


def test_right_answers_are_accepted_in_a_students_copy_which_holds_none_of_them(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("grader.jupyter._course", lambda: load_public(course.root))
    made = notebooks(course)
    for exercise in load_public(course.root).exercises:
        notebook = made[f"{exercise.name}.ipynb"]
        for number, (kept, written) in enumerate(
            zip(exercise.questions, course[exercise.name].questions, strict=True), start=1
        ):
            assert str(kept.answer).startswith(SEALED)
            assert json.dumps(written.because)[1:-1] not in notebook
            grader.answer(exercise.name, written.answer, question=number)
            grader.answer(exercise.name, f" {str(written.answer).upper()} ", question=number)
            grader.answer(exercise.name, "12345.5", question=number)
            grader.answer(exercise.name, ..., question=number)
            right, again, wrong, dots = capsys.readouterr().out.splitlines()
            assert right == again == f"Right. {written.because}"
            assert wrong == f"Not yet. {written.nudge}"
            assert "in place of the dots" in dots


def question(answer: float | str, **more: Any) -> LessonQuestion:
    return LessonQuestion("How many?", answer, "That many.", "Count.", **more)


@pytest.mark.parametrize(
    ("answer", "same", "others"),
    [
        (
            2,
            [2, 2.0, "2", " 2.0 ", "2.", "4/2", torch.tensor(2.0), torch.tensor([2])],
            [3, "two", ""],
        ),
        (0.25, [0.25, "1/4", ".25", "25e-2", torch.tensor(0.25)], ["1 / 4 or so", 0.2501]),
        ("1/3", [1 / 3, "1/3", torch.tensor(1 / 3, dtype=torch.float64)], [0.33, 0.3333]),
        (0.3, [0.1 + 0.2], [0.31]),
        ("no", ["No", " NO ", "no."], ["yes", 0, False]),
        ("b", ["b", "B", "b)"], ["a", "b c", torch.ones(2)]),
    ],
)
def test_an_answer_is_right_in_any_form_that_equals_it(
    answer: float | str, same: list[object], others: list[object]
) -> None:
    for asked in (question(answer), question(answer).sealed()):
        assert [each for each in same if not asked.accepts(each)] == []
        assert [each for each in others if asked.accepts(each)] == []
    assert question(answer).sealed().sealed() == question(answer).sealed()


@pytest.mark.parametrize("given", ["1e999999999", "9" * 5000, "1/0", "1/2e3", "."])
def test_a_text_that_is_no_short_number_is_not_worked_out(given: str) -> None:
    assert normal(given) == given.rstrip(".")


def test_a_number_too_long_for_a_text_is_a_wrong_answer() -> None:
    assert not question("2").accepts(10**5000)


def test_a_question_that_does_not_exist_is_refused(course: Course) -> None:
    with pytest.raises(RequestError, match="has no question 3"):
        grader.answer("layer_norm", 1, question=3)


WRONG = [
    ('[[questions]]\nasks = "?"\nanswer = 1\nnudge = "n"', "missing key `because`"),
    (
        '[[questions]]\nasks = "?"\nanswer = 1\nnudge = "n"\nbecause = "b"\nhint = "h"',
        "exercise.toml: questions[0]: unknown key `hint`",
    ),
    ('[[questions]]\nasks = "?"\nanswer = 1\nnudge = "n"\nbecause = ""', "questions[0].because"),
    ('[[questions]]\nasks = "?"\nanswer = true\nnudge = "n"\nbecause = "b"', "questions[0].answer"),
    (3 * '[[questions]]\nasks = "?"\nanswer = 1\nnudge = "n"\nbecause = "b"\n', "questions: "),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_question_is_read_strictly(text: str, says: str, tiny_copy: Path) -> None:
    path = tiny_copy / "reference" / "scale" / "exercise.toml"
    path.write_text(f"{path.read_text()}\n{text}\n")
    with pytest.raises(CourseError) as caught:
        load_course(tiny_copy)
    assert says in caught.value.message


@pytest.mark.slow
def test_validate_finds_an_answer_that_nobody_can_give(cli: Cli, tiny_copy: Path) -> None:
    path = tiny_copy / "reference" / "scale" / "exercise.toml"
    more = """
    [[questions]]
    asks = "Which?"
    choices = ["this", "that"]
    answer = "c"
    because = "It is."
    nudge = "Look."
    """
    path.write_text(f'{path.read_text()}predict = "What?"\n{more}')
    out = cli("validate", "scale", "--course", tiny_copy).out
    assert "exercise.toml: questions[0]: the answer is the letter of a choice: a, b" in out
    assert "exercise.toml: predict: there is no example.py" in out


def test_a_task_of_several_definitions_comes_in_pieces(course: Course) -> None:
    made = notebooks(course)
    for exercise in course.exercises:
        cells = json.loads(made[f"{exercise.name}.ipynb"])["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        pieces = ["".join(cell["source"]) for cell in code if "-piece-" in cell["id"]]
        checked = next("".join(c["source"]) for c in code if c["id"].endswith("-code"))
        assert checked.startswith(f"%%check {exercise.name}\n")
        for piece in (*pieces, checked.partition("\n")[2]):
            compile(piece, exercise.name, "exec")
            assert piece.count(f'raise NotImplementedError("fill in {exercise.name}")') >= 1
        stub = "".join((*pieces, checked))
        assert all(f" {name}(" in stub for name in exercise.implements), exercise.name
