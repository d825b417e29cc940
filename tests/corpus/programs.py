"""Programs of others: wrong and right solutions that the course was not made from.

Each file SET/<exercise>/*.py is a student's solution; its first line says what is in it. The sets:

    known    wrong, with mistakes of the catalogue ("# mistake: no_scale + bias_always")
    outside  wrong, with mistakes that are in no catalogue
    right    right, in unusual styles; three authors wrote every exercise
    public   right, in the styles of public implementations, some with other conventions
    broken   right but for one promise of the statement

`seen.toml` has mistakes that were seen in public reports, and `blind.toml` those of an author who had
read the statements alone, both as edits of programs of the set right.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SETS = ("known", "outside", "right", "public", "broken")
EDITED = ("seen.toml", "blind.toml")
LABELS = {"mistake": "known", "outside": "outside", "broken": "broken"}  # set by key of a file
STYLES = ("einsum", "separate_heads", "terse")  # of those who wrote every exercise


@dataclass(frozen=True)
class Program:
    """A student's solution of one exercise, and what its first line says of it."""

    set: str
    exercise: str
    name: str
    label: str
    text: str

    @property
    def place(self) -> str:
        """Where it stands in the corpus."""
        return f"{self.set}/{self.exercise}/{self.name}"

    @property
    def faults(self) -> frozenset[str]:
        """The faults of the catalogue that are in it."""
        return frozenset(self.label.split(" + ")) if self.set == "known" else frozenset()


def load(*sets: str) -> list[Program]:
    """Return the programs of some sets, or of all, sorted by set, exercise and name."""
    chosen = sets or SETS
    found = [_program(path) for each in chosen for path in (HERE / each).glob("*/*.py")]
    edited = (program for file in EDITED for program in _edited(file))
    found += [program for program in edited if program.set in chosen]
    return sorted(found, key=lambda p: (chosen.index(p.set), p.exercise, p.name))


def styled(style: str) -> dict[str, str]:
    """Return every exercise as the author of this style wrote it."""
    files = (HERE / "right").glob(f"*/{style}.py")
    return {path.parent.name: path.read_text("utf-8") for path in files}


def in_float32(text: str) -> str:
    """Return a program that computes each softmax in float32 and casts back, as many libraries do.

    That is right: the numbers that it loses are fewer than a check allows.
    """
    tree = _InFloat32().visit(ast.parse(text))
    return ast.unparse(ast.fix_missing_locations(tree))


class _InFloat32(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Give a softmax a dtype, and its result that of its first argument."""
        self.generic_visit(node)
        function, given = node.func, {each.arg for each in node.keywords}
        if not isinstance(function, ast.Attribute) or function.attr != "softmax" or "dtype" in given:
            return node
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if owner in ("F", "nn", "self"):
            return node
        scores = node.args[0] if owner == "torch" and node.args else function.value
        node.keywords.append(ast.keyword("dtype", ast.parse("torch.float32", mode="eval").body))
        dtype = ast.Attribute(scores, "dtype", ast.Load())
        return ast.Call(ast.Attribute(node, "to", ast.Load()), [dtype], [])


def _edited(file: str) -> Iterator[Program]:
    """Yield the mistakes of a file, each made in a program of the set right."""
    exercises = tomllib.loads((HERE / file).read_text("utf-8"))
    for exercise, name in ((e, n) for e, names in exercises.items() for n in names):
        found, whole = exercises[exercise][name], f"{Path(file).stem}_{name}"
        text = (HERE / "right" / exercise / f"{found.get('of', whole)}.py").read_text("utf-8")
        for before, after in found["edits"]:
            assert text.count(before) == 1, (exercise, name, before)
            text = text.replace(before, after)
        each, label = next((s, key) for key, s in LABELS.items() if key in found)
        yield Program(each, exercise, whole, found[label], text)


def _program(path: Path) -> Program:
    text = path.read_text("utf-8", errors="replace")
    lines = [line for line in text.split("\n")[:4] if line.startswith("# ")]
    label = next((line for line in lines if not line.startswith("# exercise:")), "# ")
    return Program(
        path.parent.parent.name, path.parent.name, path.stem, label.partition(": ")[2], text
    )
