"""Fuzz what the grader reads, as often as wanted.

    python benchmarks/fuzz.py [--cases N] [--what notebooks,zips,…] [--seed N] [--keep FOLDER]

Prints for each kind how many cases were tried, how many were accepted and refused, how many failed,
the seconds, and the slowest case. `--keep` writes the failures and the slowest case to a folder.
The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent)]

from fuzzing import FUZZERS, Campaign, campaign  # noqa: E402
from fuzzing_more import fuzzers  # noqa: E402

EVERY = FUZZERS | fuzzers()


def tell(what: str, did: Campaign) -> None:
    """Print a line on what came of the cases, and one for each way to fail."""
    refused = did.cases - did.accepted
    print(
        f"{what:10} {did.cases:>9,} cases  {did.accepted:>9,} accepted  {refused:>9,} not  "
        f"{len(did.failures):>3} ways to fail  {did.seconds:>7.1f} s  "
        f"slowest {did.slowest * 1000:.0f} ms ({len(did.slowest_case):,} bytes)",
        flush=True,
    )
    for error in did.failures:
        print(f"  {error}")


def keep(folder: Path, what: str, did: Campaign) -> None:
    """Write the failures and the slowest case."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (error, case) in enumerate(did.failures.items()):
        (folder / f"{what}-{number}").write_bytes(case)
        (folder / f"{what}-{number}.txt").write_text(error)
    (folder / f"{what}-slowest").write_bytes(did.slowest_case)


def main() -> int:
    """Fuzz, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--what", default=",".join(EVERY), help="names, with commas between")
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    failed = False
    for what in options.what.split(","):
        with TemporaryDirectory(prefix="fuzz-") as folder:
            did = campaign(EVERY[what], options.cases, Path(folder), options.seed)
        tell(what, did)
        if options.keep:
            keep(options.keep, what, did)
        failed = failed or bool(did.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
