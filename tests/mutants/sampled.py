"""What becomes of a sample of mutants of each reference.

    python tests/mutants/sampled.py

The command examines the whole sample, except for what is kept on this machine because nothing has
changed that it depends on; tests examine a part of the rest.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from mutants.mutator import Mutant, sample  # noqa: E402
from mutants.table import QUICK, SEED, Examined, diff, examine  # noqa: E402

from grader import cache  # noqa: E402
from grader.commands.cores import on_all_cores  # noqa: E402
from grader.commands.kept_proofs import hash_of  # noqa: E402
from grader.course.course import Course, load_course  # noqa: E402
from grader.grading.code_text import without_remarks  # noqa: E402

SIZE = 13  # mutants of each exercise
SIZE_THAT_TRAINS = 5  # of one that trains, which takes seconds for each


def chosen(course: Course, name: str) -> list[Mutant]:
    """Return the sample of an exercise, which is always the same."""
    size = SIZE if course[name].training is None else SIZE_THAT_TRAINS
    return sample(course[name].read("solution.py"), size)


def accepted(course: Course, examined: list[Examined]) -> list[str]:
    """Return the mutants that a suite accepted although they are wrong, as diffs."""
    wrong = [each for each in examined if each.fate == "accepted"]
    return [f"{each.exercise}: {each.how}\n{diff(course, each)}" for each in wrong]


def examine_samples(course: Course, names: Sequence[str]) -> Iterator[tuple[str, list[Examined]]]:
    """Yield what becomes of the sample of each exercise.

    The exercises are shared among all cores. What is kept is not examined again.
    """
    jobs = [(course, name, chosen(course, name)) for name in names]
    with on_all_cores(len(jobs)) as mapped:
        yield from mapped(_examine_quickly, jobs)


def _examine_quickly(job: tuple[Course, str, list[Mutant]]) -> tuple[str, list[Examined]]:
    """Examine mutants of one exercise, of which the judge asks less than it could."""
    course, name, mutants = job
    keys = {mutant: _key_of(course, name, mutant) for mutant in mutants}
    left = [mutant for mutant in mutants if cache.load(keys[mutant]) is None]
    examined = examine(course, name, left, **QUICK) if left else []
    for each in examined:
        if each.fate != "accepted":
            cache.save(keys[each.mutant], each.fate.encode())
    return name, examined


def _key_of(course: Course, name: str, mutant: Mutant) -> str:
    """Return the key of a mutant, of all that grades it, and of the judge."""
    judge = (without_remarks(path.read_text("utf-8")) for path in sorted(HERE.glob("*.py")))
    return cache.key_of("fate", hash_of(course, name, SEED), mutant.text, *judge)


def main() -> int:
    """Examine what nothing is kept of; return 0 if no suite accepted a wrong mutant."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    course, start, wrong = load_course(ROOT), time.perf_counter(), []
    for name, examined in examine_samples(course, course.names):
        wrong += accepted(course, examined)
        fates = Counter(each.fate for each in examined)
        print(f"{time.perf_counter() - start:6.0f} s  {name}: {dict(fates)}", flush=True)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
