"""The course in notebooks: generated, run in a kernel, checked in place, and handed in."""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
import torch
from commandline import Cli
from nbclient import NotebookClient

import grader
from grader.commands.notebooks import notebooks
from grader.course.course import NOTEBOOKS, Course, load_course
from grader.errors import RequestError

pytestmark = pytest.mark.in_turn

CHECKED = re.compile(r"(%%check (\w+)\n).*", re.DOTALL)
TESTS = Path(__file__).parent
SAMPLING = TESTS.parent / "examples" / "sampling"
# Numbers of the statements' worked examples, as they are drawn or printed.
EXAMPLES = {
    "dictionary_lookup": " 0.4643  0.3126  0.2231",
    "masked_softmax": " 0.2689  0.7311  0.0000",
    "self_attention": " 0.4419  0.6515  0.5683",
    "softmax_temperature": " 0.0900  0.2447  0.6652  0.8324",
    "trainable_self_attention": "-0.0739  0.0713 -0.0739  0.0713",
    "scaled_dot_product_attention": " 0.7311  0.2689  0.0000  7.3106  2.6894",
    "additive_attention": " 3.3963  3.2961",
    "distance_attention": " 0.9183  0.2985",
    "bilinear_attention": " 0.3709  0.9812",
    "histogram_transformer": " 3.0000  2.0000  3.0000  1.0000  3.0000  2.0000",
    "online_softmax": " 0.9841  1.2761",
    "seq2seq_attention": " 0.2879  0.3289  0.3832",
    "attention_dropout": " 0.0000",  # a weight that was dropped, in some of five draws
    "stacked_heads": "-0.4519  0.2216  0.4772  0.1063",
    "named_attention": " 1.3595  3.3595  0.3595",
    "causal_attention": " 0.1935  0.1663  0.1666  0.1542  0.1666  0.1529",
    "multi_head_attention": " 0.2741  0.2741  0.4519",
    "layer_norm": "-1.0000 -0.5000  0.0000  1.5000",
    "feed_forward": " 4.5000 -3.0000",
    "positional_encoding": " 0.8415  0.5403  0.0998  0.9950",
    "rotary_embedding": " 0.5403  0.8415  0.9950  0.0998",
    "transformer_block": " 6.0000  0.0000\n 7.0000  1.0000",
    "tiny_gpt": " 1.0000 -2.0000  2.0000\n-1.0000  2.0000 -2.0000",
    "tiny_llama": " 0.1863  0.2541 -0.5185  0.4237 -0.0354",
    "kv_cache": " 0.5989  1.2033  0.2775  1.7225",
    "grouped_query_attention": " 7.3106  2.6894",
    "cross_attention": " 1.4359  0.4240",
    "sliding_window": " 0.5000  0.6667",
    "byte_pair_encoding": "'tokens': [258, 100, 258, 97, 99]",
    "sampling": " 0.0000  0.4706  0.0000  0.2941  0.2353",
    "adamw": " 0.8500\n 0.8128\n 0.7672",
    "low_rank_adaptation": " 1.0000 17.0000",
    "mixture_of_experts": " 0.7311  0.2689\n 0.7311  0.2689\n 0.7311  0.2689",
    "patch_embedding": " 2.0000  3.0000  8.0000  9.0000 26.0000 27.0000 32.0000 33.0000",
    "cross_entropy": "tensor(0.7531)",
    "log_loss": "tensor(0.7531)",
    "perplexity": "tensor(2.1236)",
    "top_k": "   -inf  4.0000    -inf  3.0000\n 0.0000  0.0000    -inf    -inf",
    "nucleus": "   -inf  2.0000  1.0000    -inf\n   -inf  2.0000    -inf    -inf",
}
Fill = Callable[[str], str]


def run(
    notebook: nbformat.NotebookNode, folder: Path, *, fails: bool = False
) -> list[Mapping[str, Any]]:
    """Run a notebook top to bottom in a kernel; return what its code cells display and print.

    In the kernel `python -m grader` is a fork of a process that has imported torch.
    """
    warm = f"import sys; sys.path.append({str(TESTS)!r}); import subprocess, warm"
    starts_warm = nbformat.v4.new_code_cell(f"{warm}; subprocess.Popen = warm.warm_popen()")
    notebook.cells.insert(0, starts_warm)
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        allow_errors=fails,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    cells = [cell for cell in notebook.cells[1:] if cell.cell_type == "code"]
    return [
        {
            key: value
            for output in cell.outputs
            for key, value in output.get("data", {output.get("name"): output.get("text")}).items()
        }
        for cell in cells
    ]


def run_by_id(notebook: nbformat.NotebookNode, folder: Path) -> dict[str, Mapping[str, Any]]:
    """Run a notebook; return what each of its code cells displays and prints, by the cell's id."""
    ids = [cell.id for cell in notebook.cells if cell.cell_type == "code"]
    return dict(zip(ids, run(notebook, folder), strict=True))


def filled(text: str, solutions: Mapping[str, str]) -> nbformat.NotebookNode:
    """Return a notebook with solutions in its cells, as far as there are any."""
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if found := CHECKED.fullmatch(cell.source):
            cell.source = found[1] + solutions.get(found[2], cell.source.removeprefix(found[1]))
    return notebook


@pytest.fixture
def students(course: Course, tmp_path: Path, cli: Cli) -> Path:
    assert cli("init", tmp_path / "mine", "--notebooks", "--course-list", "full").code == 0
    return tmp_path / "mine"


def test_the_same_course_gives_the_same_notebooks_without_outputs(course: Course) -> None:
    assert "course.ipynb" not in notebooks(course)  # nobody takes all of its lists
    course = course.choose("full")
    first = notebooks(course)
    assert first == notebooks(course)
    assert set(first) == {f"{name}.ipynb" for name in (*course.names, "course", "tour")}
    for text in first.values():
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
        assert all(not cell.get("outputs") for cell in notebook.cells)
    whole = json.loads(first["course.ipynb"])["cells"]
    for last in ("-code", "-example"):
        ids = [cell["id"] for cell in whole if cell["id"].endswith(last)]
        assert ids == [f"{name}{last}" for name in course.names]
    assert not any("-piece-" in cell["id"] for cell in whole)


@pytest.mark.parametrize("root", [SAMPLING.parent.parent, SAMPLING], ids=["attention", "sampling"])
def test_a_notebook_shows_the_formula_of_its_exercise(root: Path) -> None:
    course = load_course(root)
    written = notebooks(course)
    for exercise in course.exercises:
        cells = json.loads(written[f"{exercise.name}.ipynb"])["cells"]
        task = "".join(next(cell for cell in cells if cell["cell_type"] == "markdown")["source"])
        assert exercise.formula.strip()
        assert f"\n\n$$\n{exercise.formula.strip()}\n$$\n\n" in task
        before, _, after = task.partition("\n\n$$\n")
        assert before.endswith((".", ":", ")", "    ")) or "\n    " in before
        assert "Write" in after


@pytest.mark.parametrize("root", [SAMPLING.parent.parent, SAMPLING], ids=["attention", "sampling"])
def test_a_formula_closes_what_it_opens(root: Path) -> None:
    for exercise in load_course(root).exercises:
        bare = re.sub(r"\\[{}\\]", "", exercise.formula)
        depths = list(itertools.accumulate({"{": 1, "}": -1}.get(sign, 0) for sign in bare))
        assert (min(depths), depths[-1]) == (0, 0), exercise.name
        count = Counter(re.findall(r"\\(left|right|begin|end)\b", exercise.formula))
        assert (count["left"], count["begin"]) == (count["right"], count["end"]), exercise.name


def test_an_exercise_needs_neither_formula_nor_example(tiny_course: Course) -> None:
    cells = json.loads(notebooks(tiny_course)["scale.ipynb"])["cells"]
    ids = [cell["id"].removeprefix("scale-") for cell in cells]
    assert ids == ["setup", "task", "how", "piece-1", "code"]
    assert "$$" not in "".join(cells[1]["source"])
    assert "%%example" not in "".join(cells[2]["source"])


@pytest.mark.slow
def test_the_course_in_a_notebook_passes_with_the_solutions(
    course: Course, students: Path, solutions: dict[str, str]
) -> None:
    text = (students / "exercises" / NOTEBOOKS / "course.ipynb").read_text()
    shown = run_by_id(filled(text, solutions), students)
    for exercise in course.choose("full").exercises:
        data, example = (shown[f"{exercise.name}-{cell}"] for cell in ("code", "example"))
        assert shown[f"{exercise.name}-answer-1"]["stdout"].startswith("write your answer")
        assert re.search(rf"{exercise.points} / {exercise.points}\b.*passed", data["text/plain"])
        assert data["text/html"].startswith("<iframe")
        assert EXAMPLES[exercise.name] in example["text/plain"]
        assert "<rect" in example["text/html"]


@pytest.mark.slow
def test_a_notebook_leads_a_sentence_through_its_cells_and_the_files_beside_it(
    students: Path, solutions: dict[str, str]
) -> None:
    exercises = students / "exercises"
    (exercises / "layer_norm.py").write_text(solutions["layer_norm"])
    notebook = nbformat.reads((exercises / NOTEBOOKS / "tour.ipynb").read_text(), as_version=4)
    notebook.cells.insert(2, nbformat.v4.new_code_cell(solutions["feed_forward"]))
    *_, data = run(notebook, students)
    made = set(re.findall(r"Made by your `(\w+)`", data["text/plain"]))
    assert made == {"layer_norm", "feed_forward"}
    assert data["text/html"].count("&lt;figure&gt;") == 9 + 1


@pytest.mark.slow
def test_the_second_course_in_a_notebook_passes_with_its_solutions(
    cli: Cli, tmp_path: Path
) -> None:
    course, mine = load_course(SAMPLING), tmp_path / "mine"
    assert cli("init", mine, "--notebooks", "--course", SAMPLING).code == 0
    text = (mine / "exercises" / NOTEBOOKS / "course.ipynb").read_text()
    texts = {name: course[name].read("solution.py") for name in course.names}
    shown = run_by_id(filled(text, texts), mine)
    for exercise in course.exercises:
        data, example = (shown[f"{exercise.name}-{cell}"] for cell in ("code", "example"))
        assert f"{exercise.points} / {exercise.points}" in data["text/plain"]
        assert EXAMPLES[exercise.name] in example["text/plain"]


@pytest.mark.slow
def test_an_example_of_a_stub_says_what_is_not_written_yet(
    course: Course, students: Path, solutions: dict[str, str]
) -> None:
    course = course.choose("full")  # as in the students' copy
    text = (students / "exercises" / NOTEBOOKS / "course.ipynb").read_text()
    notebook = filled(text, {"transformer_block": solutions["transformer_block"]})
    setup, *code = (cell for cell in notebook.cells if cell.cell_type == "code")
    unknown = [cell for cell in code if cell.source.startswith("%%example")]
    stubs = [
        nbformat.v4.new_code_cell(CHECKED.sub(_body, cell.source), id=f"again-{cell.id}")
        for cell in code
        if "-answer-" not in cell.id
    ]
    notebook.cells = [setup, *unknown, *stubs]
    shown = run_by_id(notebook, students)
    for exercise in course.exercises:
        says = f"{exercise.implements[0]} is not defined yet: run the cells above first\n"
        assert shown[f"{exercise.name}-example"] == {"stdout": says}
        example = shown[f"again-{exercise.name}-example"]
        unwritten = example["stdout"].removeprefix("not written yet: fill in ").strip()
        assert unwritten in (exercise.name, *exercise.requires)


def _body(checked: re.Match[str]) -> str:
    return checked[0].removeprefix(checked[1])


@pytest.mark.slow
def test_the_pieces_of_a_task_are_graded_together(
    cli: Cli, students: Path, solutions: dict[str, str], tmp_path: Path
) -> None:
    text = (students / "exercises" / NOTEBOOKS / "dictionary_lookup.ipynb").read_text()
    first, _, second = solutions["dictionary_lookup"].partition("\n\n\ndef lookup")
    notebook = nbformat.reads(text, as_version=4)
    cells = {cell.id: cell for cell in notebook.cells}
    piece, last = (cells[f"dictionary_lookup-{each}"] for each in ("piece-1", "code"))
    last.source = f"%%check dictionary_lookup\ndef lookup{second}"
    piece.source = first
    handed_in = tmp_path / "s001" / "dictionary_lookup.ipynb"
    handed_in.parent.mkdir()
    nbformat.write(notebook, handed_in)
    answers = cells["dictionary_lookup-answer-1"]
    answers.source = answers.source.replace("...", "8.0")
    alone = [cells["setup"], nbformat.v4.new_code_cell(last.source, id="alone")]
    shown = run_by_id(notebook, students)
    assert re.search(r"12 / 12\b.*passed", shown["dictionary_lookup-code"]["text/plain"])
    assert EXAMPLES["dictionary_lookup"] in shown["dictionary_lookup-example"]["text/plain"]
    assert shown["dictionary_lookup-answer-1"]["stdout"].startswith("Right. ")
    assert shown["dictionary_lookup-answer-2"]["stdout"].startswith("write your answer")
    nothing = run_by_id(nbformat.v4.new_notebook(cells=alone), students)
    assert "defines no `attention`" in " ".join(nothing["alone"]["text/plain"].split())
    said = cli("check", handed_in.parent, "dictionary_lookup", "--format", "json")
    report = json.loads(said.out)
    assert (report["points"], report["notes"]) == (12, [])


@pytest.mark.slow
def test_stubs_and_mistakes_are_told_in_the_notebook(
    students: Path, solutions: dict[str, str]
) -> None:
    text = (students / "exercises" / NOTEBOOKS / "dictionary_lookup.ipynb").read_text()
    notebook = nbformat.reads(text, as_version=4)
    wrong = solutions["dictionary_lookup"].replace("/ temp, dim=-1", "/ temp, dim=-2")
    more = (
        f"%%check dictionary_lookup\n{wrong}",
        "import grader\ngrader.check('dictionary_lookup')",
        "import torch\ngrader.show(torch.eye(3))",
    )
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in more]
    outputs = run_by_id(notebook, students)
    stub, (*_, said, again, picture) = outputs["dictionary_lookup-code"], outputs.values()
    assert "not started" in stub["text/plain"]
    assert "→ The softmax runs over the queries" in said["text/plain"]
    assert "→ The softmax runs over the queries" in again["text/plain"]
    assert "grader-notebook-" not in said["text/html"]
    assert "<svg" in picture["text/html"]


@pytest.mark.slow
def test_a_cell_is_graded_by_what_it_defines_itself(
    students: Path, solutions: dict[str, str]
) -> None:
    name, defines = "layer_norm", "LayerNorm"
    right = solutions[name]
    cells = {
        "right": right,
        "no Python": f"\n\n{right.replace('return', 'return return', 1)}",
        "another name": right.replace(f"class {defines}", "class Norm"),
        "no end": f"input()\n{right}",
        "forbidden": "from torch import nn\nclass LayerNorm(nn.LayerNorm): pass",
        "right again": f"if True:\n{textwrap.indent(right, '    ')}",
    }
    setup = ["%load_ext grader", *(f"%%check {name}\n{cell}" for cell in cells.values())]
    unknown = "%%check layer_nrm\n1"
    made = [nbformat.v4.new_code_cell(source) for source in [*setup, unknown]]
    _, first, syntax, other, ended, forbidden, again, error = run(
        nbformat.v4.new_notebook(cells=made), students
    )
    assert "passed" in first["text/plain"]
    numbered = enumerate(cells["no Python"].split("\n"), start=2)  # behind the magic
    line = next(number for number, text in numbered if "return return" in text)
    assert f"line {line} of this cell is not valid Python: invalid syntax" in syntax["text/plain"]
    assert "LayerNorm does the work" in " ".join(forbidden["text/plain"].split())
    assert f"defines no `{defines}`" in other["text/plain"]
    assert "but `Norm`" in other["text/plain"]
    assert f"defines no `{defines}`" in ended["text/plain"]
    assert "cell 6 raised EOFError" in " ".join(ended["text/plain"].split()), ended["text/plain"]
    assert "passed" in again["text/plain"]
    assert "layer_norm" in error["text/plain"]


@pytest.mark.slow
def test_a_check_without_a_name_is_of_what_its_cell_defines(
    students: Path, solutions: dict[str, str]
) -> None:
    right = solutions["layer_norm"]
    cells = [
        "%load_ext grader",
        f"%%check\n{right.replace('return', 'return 2 *', 1)}",
        f"%%check\n{right}",
        "def broken(:",
        "import grader\ngrader.check('layer_norm')",
        "%%check\n1",
        f"%%check\n{right}\n{solutions['masked_softmax']}",
        "%%check\nclass LayerNorm:\n    return return",
    ]
    made = [nbformat.v4.new_code_cell(source) for source in cells]
    notebook = nbformat.v4.new_notebook(cells=made)
    shown = [output.get("text/plain", "") for output in run(notebook, students, fails=True)]
    _, wrong, passed, _, again, nothing, several, broken = shown
    assert re.search(r"layer_norm .* fail", wrong)
    assert re.search(r"layer_norm .* passed", passed)
    assert re.search(r"layer_norm .* passed", again)
    assert "note: cell 5 is no valid Python and was left out\n" in again  # In[1] is the test's
    assert not any("notebook.ipynb" in said for said in shown)
    assert "this cell defines no exercise" in nothing
    assert "%%check masked_softmax" in several
    assert "line 3 of this cell is not valid Python" in broken


@pytest.mark.slow
def test_a_notebook_that_is_handed_in_counts_with_its_check_cells(
    cli: Cli, course: Course, students: Path, solutions: dict[str, str], tmp_path: Path
) -> None:
    course = course.choose("full")
    text = (students / "exercises" / NOTEBOOKS / "course.ipynb").read_text()
    place = tmp_path / "s001" / "course.ipynb"
    place.parent.mkdir()
    nbformat.write(filled(text, solutions), place)
    graded = [each for each in course.exercises if each.training is None]
    more = ("--course", course.root, "--course-list", "full", "--format", "json", "--seed", 3)
    said = cli("check", place.parent, *(each.name for each in graded), *more)
    report, points = json.loads(said.out), sum(each.points for each in graded)
    assert (report["points"], said.code) == (points, 0), report["notes"]


@pytest.mark.slow
def test_untouched_notebooks_beside_the_files_are_no_rivals(
    cli: Cli, students: Path, solutions: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(students)
    assert "changed since" not in cli("status").out
    (students / "exercises" / "layer_norm.py").write_text(solutions["layer_norm"])
    said = cli("check", "exercises", "--format", "json")
    report = json.loads(said.out)
    assert [note for note in report["notes"] if "ipynb" in note] == []
    assert report["points"] == 8


def test_weights_are_drawn_as_a_matrix_with_axes_tokens_and_a_scale() -> None:
    weights = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    assert repr(grader.show(weights)) == " 1.0000  0.0000\n 0.2500  0.7500"
    drawing = grader.show(weights)._repr_html_()
    assert drawing.count("<rect") == 4 + 1  # the cells, and the scale
    assert [word for word in ("query", "key") if f">{word}</text>" not in drawing] == []
    assert "query" not in grader.show(weights, title="output")._repr_html_()
    heads = grader.show(torch.stack([weights, -weights]), ["a", "<b>"])._repr_html_()
    assert ">head 1</text>" in heads
    assert ">-1.00</text>" in heads
    assert heads.count("&lt;b&gt;") == 4
    assert "<b>" not in heads


def test_a_drawing_is_saved_as_a_file_that_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "output.svg"
    shown = grader.show([[1.0, -2.0]], title="output", axes=("token", "feature"))
    shown.save(path)
    drawing = ElementTree.parse(path).getroot()
    texts = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert [word for word in ("output", "token", "feature", "-2.00") if word not in texts] == []


@pytest.mark.parametrize(
    ("weights", "tokens"),
    [(torch.ones(3), ()), (torch.ones(1, 1, 1, 1), ()), ([[1.0]], ("a", "b"))],
)
def test_what_is_no_matrix_of_weights_is_refused(weights: Any, tokens: tuple[str, ...]) -> None:
    with pytest.raises(RequestError):
        grader.show(weights, tokens)


@pytest.mark.parametrize("number", [1e308, -1e308, 12345.6, float("inf"), float("nan"), 1e-300])
def test_a_number_is_short_however_large_it_is(number: float) -> None:
    shown = grader.show([[number, 0.5], [0.25, 0.75]], ["a", "b"])
    assert max(map(len, repr(shown).splitlines())) < 20
    assert not re.search(r"\d{8}", re.sub(r"<rect[^>]*>|<line[^>]*>", "", shown._repr_html_()))


def test_outside_a_notebook_check_says_what_to_use() -> None:
    with pytest.raises(RequestError, match="there is no notebook here"):
        grader.check("layer_norm")
