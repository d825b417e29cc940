"""Assignment notebooks as nbgrader and otter write them, made cell by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from commandline import Cli

from grader.course.course import UNREVIEWED

Cell = Any  # nbformat has no types

EXAMPLES = Path(__file__).parent.parent / "examples" / "other_graders"
SQUARES = 'def squares(n):\n    """Squares."""\n    return [i * i for i in range(n)]'
SOFTMAX = '''\
def stable_softmax(scores):
    """Return the softmax over the last axis.

    scores   (..., n_keys)
    """
    ### BEGIN SOLUTION
    shifted = scores - scores.max(dim=-1, keepdim=True).values  # (..., n_keys)
    weights = shifted.exp()  # (..., n_keys)
    return weights / weights.sum(dim=-1, keepdim=True)  # (..., n_keys)
    ### END SOLUTION'''
ATTENTION = '''\
def attention(Q, K, V):
    """Return the values, weighted by how well their keys fit each query."""
    ### BEGIN SOLUTION
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])  # (n_queries, n_keys)
    return stable_softmax(scores) @ V  # (n_queries, d_v)
    ### END SOLUTION'''
LAYER = '''\
class Scale(nn.Module):
    """Multiply every feature by a learned number."""

    def __init__(self, d_model):
        super().__init__()
        ### BEGIN SOLUTION
        self.gain = nn.Parameter(torch.ones(d_model))
        ### END SOLUTION

    def forward(self, x):
        """x (batch, d_model) → the same shape."""
        ### BEGIN SOLUTION
        return x * self.gain  # (batch, d_model)
        ### END SOLUTION'''


def written(path: Path, *cells: Cell, **metadata: Any) -> Path:
    """Write a notebook; return its path."""
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    for number, cell in enumerate(cells, start=1):
        cell.id = f"cell-{number}"  # nbformat draws one at random
    made = nbformat.v4.new_notebook(cells=list(cells), metadata={"kernelspec": kernel} | metadata)
    nbformat.validate(made)
    path.write_text(f"{nbformat.writes(made)}\n", "utf-8")
    return path


def text(source: str, **metadata: Any) -> Cell:
    """A Markdown cell."""
    return nbformat.v4.new_markdown_cell(source, metadata=metadata)


def raw(source: str) -> Cell:
    """A raw cell, as otter's blocks begin and end."""
    return nbformat.v4.new_raw_cell(source)


def code(source: str, gives: str = "", *, prints: str = "", run: bool = True, **marks: Any) -> Cell:
    """A code cell, with what it gives or prints; `marks` are nbgrader's."""
    cell = nbformat.v4.new_code_cell(source, execution_count=1 if run else None)
    if gives:
        data = {"text/plain": gives}
        cell.outputs.append(nbformat.v4.new_output("execute_result", data, execution_count=1))
    if prints:
        cell.outputs.append(nbformat.v4.new_output("stream", name="stdout", text=prints))
    if marks:
        cell.metadata["nbgrader"] = {"schema_version": 3, "task": False, **marks}
    return cell


def answer(source: str, grade_id: str) -> Cell:
    """An autograded answer of nbgrader."""
    return code(source, grade=False, grade_id=grade_id, locked=False, solution=True)


def checks(source: str, grade_id: str, points: float) -> Cell:
    """An autograder test cell of nbgrader."""
    marks = {"grade": True, "locked": True, "solution": False}
    return code(source, grade_id=grade_id, points=points, **marks)


def for_nbgrader(path: Path) -> Path:
    """A problem set of three questions, and a fourth that is graded by hand."""
    by_hand = {"grade": True, "grade_id": "why", "locked": False, "points": 2, "solution": True}
    return written(
        path,
        text("Before you turn this in, make sure that everything runs: **Restart & Run All**."),
        code("import math\n\nimport torch\nfrom torch import nn\n%matplotlib inline"),
        code("def rows(x):\n    return x.sum(dim=-1)\n\nX = torch.tensor([[1.0, 2.0, 3.0]])"),
        text(
            "---\n## Part A: stable softmax (3 points)\n\nWrite the softmax over the **last** "
            "axis, $w_j = e^{s_j} / \\sum_k e^{s_k}$, so that scores of any size give finite "
            "weights. See [the notes](https://example.org/notes).\n\n"
            "* Every row sums to 1.\n* No loop runs over rows.\n"
        ),
        answer(SOFTMAX, "stable_softmax"),
        text("Check it on a row of three scores:"),
        code("stable_softmax(X)", "tensor([[0.0900, 0.2447, 0.6652]])"),
        checks(
            '"""Every row sums to 1"""\n'
            "assert torch.allclose(rows(stable_softmax(X)), torch.ones(1))\n"
            "### BEGIN HIDDEN TESTS\n"
            "for size in (2, 5):\n"
            "    x = torch.arange(float(size)).view(1, -1)  # one row\n"
            "    right = x.softmax(-1)\n"
            "    assert torch.allclose(stable_softmax(x), right), f'wrong for {size} keys'\n"
            "### END HIDDEN TESTS",
            "rows_sum_to_one",
            2,
        ),
        checks(
            "### BEGIN HIDDEN TESTS\n"
            "# large scores give finite weights\n"
            "assert stable_softmax(1e4 * X).isfinite().all()\n"
            "### END HIDDEN TESTS",
            "large_scores",
            1,
        ),
        text("## Part B: attention\n\nUse your `stable_softmax`.\n\n$$\nw = QK^T / \\sqrt{d}\n$$"),
        answer(ATTENTION, "cell-3f2a9c01b7"),
        checks(
            "Q = torch.eye(2)\n"
            "out = attention(Q, Q, Q)\n"
            "assert out.shape == (2, 2)\n"
            "assert torch.allclose(torch.tensor(1.0), out.sum() / 2)",
            "cell-99c1d20b35",
            1.5,
        ),
        checks(
            '"""attention relies on stable_softmax"""\n'
            "kept = stable_softmax\ndel stable_softmax\n"
            "try:\n    attention(Q, Q, Q)\nexcept NameError:\n    pass\n"
            'else:\n    raise AssertionError("it does not")\nfinally:\n    stable_softmax = kept',
            "uses_softmax",
            0.5,
        ),
        text("## Part C: a layer"),
        answer(LAYER, "scale_layer"),
        checks(
            '"""A new layer changes nothing."""\n'
            "layer = Scale(3)\n"
            "assert torch.allclose(layer(X), X)\n"
            "try:\n    layer(torch.ones(1, 4))\nexcept RuntimeError:\n    pass\n"
            'else:\n    raise AssertionError("four features fit three numbers")',
            "new_layer",
            1,
        ),
        text("## Part D\n\nWhy does the softmax subtract the maximum?"),
        text("It does not overflow.", nbgrader={"schema_version": 3, "task": False, **by_hand}),
        celltoolbar="Create Assignment",
    )


def question(settings: str, prose: str, solution: list[Cell], cases: list[Cell]) -> list[Cell]:
    """A question as otter assign takes it."""
    return [
        raw(f"# BEGIN QUESTION\n{settings}"),
        text(prose),
        raw("# BEGIN SOLUTION"),
        *solution,
        raw("# END SOLUTION"),
        *([raw("# BEGIN TESTS"), *cases, raw("# END TESTS")] if cases else []),
        raw("# END QUESTION"),
    ]


def for_otter(path: Path) -> Path:
    """A lab of three questions, and a fourth that is graded by hand."""
    return written(
        path,
        raw("# ASSIGNMENT CONFIG\nname: lab03\ngenerate: true\nexport_cell:\n    pdf: false"),
        text("# Lab 3: attention\n\nThis lab builds attention step by step."),
        code("import torch\nimport matplotlib.pyplot as plt\n\nscores = torch.tensor([1.0, 2.0])"),
        *question(
            "name: q1\npoints: 3",
            "**Question 1.** Write `causal_mask(n)`: entry $(i, j)$ is true if token $i$ may "
            "attend to token $j$.",
            [
                code(
                    "def causal_mask(n):\n"
                    "    positions = torch.arange(n) # SOLUTION NO PROMPT\n"
                    "    return positions.view(-1, 1) >= positions # SOLUTION\n"
                    "\n"
                    "plt.imshow(causal_mask(4)); # IGNORE"
                )
            ],
            [
                code("causal_mask(2).tolist()", "[[True, False], [True, True]]"),
                code("causal_mask(3).dtype == torch.bool", "True"),
                code("# HIDDEN\ncausal_mask(5).sum().item()", "15"),
            ],
        ),
        *question(
            "name: q2\nmanual: false",
            "**Question 2.** Turn scores into weights.",
            [
                code(
                    "def weights_of(scores, temperature=1.0):\n"
                    "    # BEGIN SOLUTION NO PROMPT\n"
                    "    if temperature <= 0:\n"
                    '        raise ValueError("too cold")\n'
                    "    return torch.softmax(scores / temperature, dim=-1)\n"
                    "    # END SOLUTION\n"
                    '    """ # BEGIN PROMPT\n'
                    "    # Divide first.\n"
                    "    pass\n"
                    '    """; # END PROMPT'
                )
            ],
            [
                code(
                    '""" # BEGIN TEST CONFIG\n'
                    "points: 1\n"
                    "success_message: Well done!\n"
                    "failure_message: The weights of two scores are wrong.\n"
                    '""" # END TEST CONFIG\n'
                    "weights_of(scores)",
                    "tensor([0.2689, 0.7311])",
                ),
                code(
                    '""" # BEGIN TEST CONFIG\n'
                    "hidden: true\n"
                    "points: 2\n"
                    "name: refuses zero\n"
                    '""" # END TEST CONFIG\n'
                    "def test_refuses(weights_of, env):\n"
                    '    """A temperature of zero is refused."""\n'
                    "    import pytest\n"
                    "    with pytest.raises(ValueError):\n"
                    '        weights_of(env["torch"].ones(2), 0.0)\n'
                    "\n"
                    "test_refuses(weights_of, globals())  # IGNORE"
                ),
            ],
        ),
        text("Now both come together."),
        *question(
            "name: q3\npoints:\n    each: 1",
            "**Question 3.** Mask the scores, then take the weights.",
            [
                code(
                    "def causal_weights(scores):\n"
                    "    n = scores.shape[-1]\n"
                    "    masked = scores.masked_fill(~causal_mask(n), -torch.inf) # SOLUTION\n"
                    "    return weights_of(masked) # SOLUTION\n"
                    "\n"
                    "first = causal_weights(torch.zeros(2, 2))[0] # SOLUTION"
                )
            ],
            [
                code("first", "tensor([1., 0.])"),
                code("print(causal_weights(torch.zeros(2, 2)))", prints="tensor([[1.0, …"),
                code(
                    "# HIDDEN\n"
                    "torch.manual_seed(0)\n"
                    "made = causal_weights(torch.randn(4, 4))\n"
                    "bool((made.sum(-1) - 1).abs().max() < 1e-6)",
                    "True",
                ),
            ],
        ),
        *question("name: q4\nmanual: true", "**Question 4.** Why?", [text("**SOLUTION**")], []),
        text("You are done!"),
    )


def one_nbgrader(*cases: str, before: str = "import torch", solution: str = SQUARES) -> list[Any]:
    """A problem set of one question."""
    made = [checks(case, f"case_{n}", 1) for n, case in enumerate(cases, start=1)]
    return [text("# Squares"), code(before), answer(solution, "squares"), *made]


MAKERS = {"nbgrader": for_nbgrader, "otter": for_otter}


def one_otter(*cases: Any, settings: str = "name: squares", solution: str = SQUARES) -> list[Any]:
    """A lab of one question."""
    return question(settings, "# Squares", [code(solution)], list(cases))


def review(course: Path) -> None:
    """Mark all exercises as reviewed, as a person does who has read them."""
    for file in course.glob("reference/*/exercise.toml"):
        text = file.read_text()
        assert text.count(f"\n{UNREVIEWED}\n") == 1
        file.write_text(text.replace(f"\n{UNREVIEWED}\n", "\n"))


def validated(cli: Cli, course: Path, *names: str) -> list[str]:
    """Return the problems that are not about `grader build`."""
    said = cli("validate", *names, "--course", course)
    assert said.code == 1, said.err
    lines = said.out.splitlines()
    return [line for line in lines if line[:1] == "✗" and "`grader build`" not in line]
