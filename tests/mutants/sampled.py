"""What becomes of a sample of mutants, kept for as long as what it depends on is the same.

    python tests/mutants/sampled.py

The command examines the samples whose records in fates.json do not hold. Tests take the records
that do, and examine a part of the others.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from mutants.mutator import Mutant, sample  # noqa: E402
from mutants.table import QUICK, SEED, Examined, diff, examine  # noqa: E402

from grader.commands.kept_proofs import hash_of  # noqa: E402
from grader.course.course import Course, load_course  # noqa: E402
from grader.grading.code_text import without_remarks  # noqa: E402

FILE = HERE / "fates.json"
SIZE = 13  # mutants of each exercise
SIZE_THAT_TRAINS = 5  # of one that trains, which takes seconds for each


class Fates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many mutants of one exercise had which fate."""

    of: str  # a hash of what they depend on
    fates: dict[str, int]


def chosen(course: Course, name: str) -> list[Mutant]:
    """Return the sample of an exercise, which is always the same."""
    size = SIZE if course[name].training is None else SIZE_THAT_TRAINS
    return sample(course[name].read("solution.py"), size)


def held(course: Course) -> dict[str, Fates]:
    """Return the records that hold, by exercise."""
    return {name: each for name, each in _load().items() if each.of == _hash_of(course, name)}


def accepted(course: Course, examined: list[Examined]) -> list[str]:
    """Return the mutants that a suite accepted although they are wrong, as diffs."""
    wrong = [each for each in examined if each.fate == "accepted"]
    return [f"{each.exercise}: {each.how}\n{diff(course, each)}" for each in wrong]


def examine_quickly(course: Course, name: str, mutants: list[Mutant]) -> list[Examined]:
    """Return what becomes of mutants, of which the judge asks less than it could."""
    return examine(course, name, mutants, **QUICK)


def _load() -> Mapping[str, Fates]:
    if not FILE.exists():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Fates])


def _hash_of(course: Course, name: str) -> str:
    """Return a hash of the sample, of all that grades it, and of the judge."""
    digest = hashlib.sha256(hash_of(course, name, SEED).encode())
    for path in sorted(HERE.glob("*.py")):
        digest.update(f"\0{path.name}\0{without_remarks(path.read_text('utf-8'))}".encode())
    for mutant in chosen(course, name):
        digest.update(f"\0{mutant.text}".encode())
    return digest.hexdigest()[:16]


def main() -> int:
    """Examine what has no record, and keep it; return 0 if no suite accepted a wrong mutant."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    course, start, wrong = load_course(ROOT), time.perf_counter(), []
    kept = held(course)
    for name in [name for name in course.names if name not in kept]:
        examined = examine_quickly(course, name, chosen(course, name))
        wrong += accepted(course, examined)
        fates = Counter(each.fate for each in examined)
        kept[name] = Fates(_hash_of(course, name), dict(sorted(fates.items())))
        print(f"{time.perf_counter() - start:6.0f} s  {name}: {dict(fates)}", flush=True)
    ordered = {name: kept[name] for name in course.names}
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
