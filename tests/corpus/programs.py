"""Programs of others: wrong and right solutions that the course was not made from.

Each file SET/<exercise>/*.py is a student's solution; its first line says what is in it. The sets:

    known    wrong, with mistakes of the catalogue ("# mistake: no_scale + bias_always")
    outside  wrong, with mistakes that are in no catalogue
    right    right, in unusual styles; three authors wrote every exercise
    public   right, in the styles of public implementations, some with other conventions
    broken   right but for one promise of the statement
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SETS = ("known", "outside", "right", "public", "broken")
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
    return [
        _program(path) for each in sets or SETS for path in sorted((HERE / each).glob("*/*.py"))
    ]


def styled(style: str) -> dict[str, str]:
    """Return every exercise as the author of this style wrote it."""
    files = (HERE / "right").glob(f"*/{style}.py")
    return {path.parent.name: path.read_text("utf-8") for path in files}


def _program(path: Path) -> Program:
    text = path.read_text("utf-8", errors="replace")
    lines = [line for line in text.split("\n")[:4] if line.startswith("# ")]
    label = next((line for line in lines if not line.startswith("# exercise:")), "# ")
    return Program(
        path.parent.parent.name, path.parent.name, path.stem, label.partition(": ")[2], text
    )
