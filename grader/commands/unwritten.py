"""What an author has still to write: the places that say TODO, and those whose TODO left a gap.

A file that `grader new` wrote says TODO in each place. If only that word was taken out, or the text
as well, the place looks finished; it is found by the line of the template.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from grader.commands.new import new_texts
from grader.commands.proving import TO_DO
from grader.course.course import MISTAKES_FILE, Exercise
from grader.report import clean

# The files in the order in which an author writes them; all others come after.
ORDER = ("statement.md", "solution.py", "test_public.py", "test_hidden.py", MISTAKES_FILE)
GAP = "nothing is written here yet in place of the TODO"
NO_TEXT = re.compile(r"[\s.:]+")
# Where a paragraph or a whole list can be gone.
GAPS_OF_STATEMENT = (
    (re.compile(r"\A\s*(?![#\s])"), "the title is missing"),
    (re.compile(r"\A\s*(?:#.*\n\s*)?Write$", re.MULTILINE), "the idea of the exercise is missing"),
    (re.compile(r"^Requirements\s*\Z", re.MULTILINE), "no requirement is written"),
)


def left_to_do(exercise: Exercise) -> list[str]:
    """Return, as problems, the lines of an exercise's files that its author has to write."""
    paths = sorted(exercise.folder.glob("*.*"), key=lambda path: (_rank(path), path))
    return [
        f"reference/{exercise.name}/{path.name}:{number}: {says}"
        for path in paths
        for number, says in sorted(_left_in(path, exercise))
    ]


def folded_to_do(problems: Iterable[str]) -> Iterator[str]:
    """Yield problems; of those that say TODO, all of the first file, and one line on the others."""
    first, others = "", dict[str, list[str]]()
    for problem in problems:
        place, _, says = problem.partition(": ")
        file, _, line = place.rpartition(":")
        if not says.startswith(TO_DO) or (first := first or file) == file:
            yield problem
        else:
            others.setdefault(file, []).append(line)
    if others:
        parts = [f"{file} (line{'s' * (len(n) > 1)} {', '.join(n)})" for file, n in others.items()]
        yield f"then the places with TODO in {', '.join(parts)}"


def _rank(path: Path) -> int:
    return ORDER.index(path.name) if path.name in ORDER else len(ORDER)


def _left_in(path: Path, exercise: Exercise) -> Iterator[tuple[int, str]]:
    """Yield the numbers of lines that are left to write, and what they say."""
    text = path.read_text("utf-8", "replace")
    gaps = _gaps(path.name, exercise)
    for number, line in enumerate(text.splitlines(), start=1):
        if TO_DO in line:
            yield number, _asked(line)
        elif NO_TEXT.sub("", line) in gaps:
            yield number, f"{GAP}: {clean(line.strip())}"
    for pattern, says in GAPS_OF_STATEMENT if path.name == ORDER[0] else ():
        if found := pattern.search(text):
            yield text.count("\n", 0, found.start()) + 1, says


def _asked(line: str) -> str:
    """Return the text of a TODO, without the code around it."""
    head, _, text = line.partition(TO_DO)
    if head.count('"') % 2:
        text = text.partition('"')[0]
    return clean(f"{TO_DO}{text}".strip(' ",.'))


def _gaps(file: str, exercise: Exercise) -> set[str]:
    """Return how lines of a new file look if their TODO is gone, without blanks and full stops."""
    found = set()
    for line in new_texts(exercise.name, exercise.order).get(file, "").splitlines():
        head, mark, rest = line.partition(f"{TO_DO}: ")
        is_comment = head.lstrip().startswith("#") and not file.endswith(".md")
        if mark and not is_comment and ". " not in head:  # else it is an instruction
            tail = rest[rest.index('"') :] if '"' in rest else ""
            found |= {NO_TEXT.sub("", head + each) for each in (rest, tail)}
    return found - {"", '"""'}
