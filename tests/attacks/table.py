"""`make attacks`: the whole corpus against this grader and against plain pytest, as a table.

    python tests/attacks/table.py [--ours] [--every N] [--write]

`--ours` leaves plain pytest out; `--every N` tries each N-th attack; `--write` keeps the table in
docs/attacks.md. The exit code is 1 if an attack won against this grader, or kept others from
being graded.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from attacks import against_naive, ours  # noqa: E402
from attacks.corpus import Attack, load  # noqa: E402
from attacks.world import Evidence  # noqa: E402
from pages import keep  # noqa: E402

from grader.submissions.reader.host import readers  # noqa: E402

PAGE = HERE.parent.parent / "docs" / "attacks.md"
REMAINS = "remains"  # the family of known risks, which docs/security.md describes


def rows(
    attacks: Sequence[Attack], mine: Mapping[str, Evidence], naive: Mapping[str, Evidence]
) -> Iterator[str]:
    """Yield the page's Markdown: a table by family, then a list of every trick."""
    yield (
        "| family | attacks | win against plain pytest | others graded | win here | others graded |"
    )
    yield "|---|--:|--:|--:|--:|--:|"
    families = sorted({attack.family for attack in attacks} - {REMAINS})
    counts = [_count(attacks, family, mine, naive) for family in families]
    for family, row in zip(families, counts):
        yield f"| {family} | {' | '.join(map(str, row))} |"
    yield f"| **all** | {' | '.join(f'**{sum(column)}**' for column in zip(*counts))} |"
    for family in [*families, REMAINS]:
        yield ""
        yield f"### {family}"
        groups: dict[str, list[str]] = {}  # tricks by what they won
        for attack in attacks:
            if attack.family == family:
                heading = _told(naive.get(attack.id), mine.get(attack.id))
                groups.setdefault(heading, []).append(attack.says)
        for heading in sorted(groups):
            yield ""
            if heading:
                yield heading
                yield ""
            yield from tricks(groups[heading])


def tricks(sentences: Sequence[str]) -> Iterator[str]:
    """Yield a list of tricks; those that begin alike, up to a colon, share a line."""
    lines: dict[str, list[str]] = {}
    for says in sentences:
        start, colon, rest = says.partition(": ")
        lines.setdefault(start + colon, []).append(rest.rstrip("."))
    for start, rests in lines.items():
        yield f"- {start}{'; '.join(rests)}{'.' if rests != [''] else ''}"


def _told(naive: Evidence | None, here: Evidence | None) -> str:
    """Return what an attack won against plain pytest, and what here, if anything."""
    won, won_here = _in_words(naive), _in_words(here)
    return (f"*{won}*" if won else "") + (f" **Here: {won_here}**" if won_here else "")


def _count(
    attacks: Sequence[Attack],
    family: str,
    mine: Mapping[str, Evidence],
    naive: Mapping[str, Evidence],
) -> tuple[int, ...]:
    chosen = [attack.id for attack in attacks if attack.family == family]
    found = ([side[name] for name in chosen if name in side] for side in (naive, mine))
    return len(chosen), *(
        count
        for side in found
        for count in (sum(bool(one.wins) for one in side), sum(one.others_graded for one in side))
    )


def _in_words(found: Evidence | None) -> str:
    """Return what an attack won, without the figures that differ from run to run."""
    if found is None:
        return "not tried"
    points = [f"{found.points} of 10 points"] if found.points > found.honest else []
    told = ["secrets"] if any(text.startswith("told the ") for text in found.loot) else []
    sent = ["network"] if any("network" in text for text in found.loot) else []
    left = ["left files"] if any(text.startswith("left") for text in found.traces) else []
    lasting = [
        re.sub(r"^\d+ |:.*", "", text) for text in found.traces if not text.startswith("left")
    ]
    harm = [
        re.sub(r" (with|took) [\d.]+ \w+.*|(?<=^took )[\d.]+ GiB of ", "", text)
        for text in found.harm
    ]
    lost = [] if found.others_graded else ["others not graded"]
    return ", ".join([*points, *told, *sent, *left, *lasting, *harm, *lost])


def main() -> int:
    """Run the corpus, print the table, and keep it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    attacks = load()[:: options.every]
    start = time.perf_counter()
    with TemporaryDirectory(prefix="attacks-") as folder:
        mine = ours.run(Path(folder), attacks)
    readers().close()  # or else it ends a moment after this process, as a child of whoever adopts
    spent = time.perf_counter() - start
    naive: dict[str, Evidence] = {}
    if not options.ours:
        with TemporaryDirectory(prefix="attacks-") as folder:
            naive = against_naive.run(Path(folder), attacks)
    table = "\n".join(rows(attacks, mine, naive)) + "\n"
    print(table)
    won = [attack for attack in attacks if mine[attack.id].wins and attack.family != REMAINS]
    stopped = [attack for attack in attacks if mine[attack.id].stops]
    user = "root" if os.geteuid() == 0 else "an ordinary user"
    print(
        f"{len(attacks)} attacks in {spent:.0f} s as {user}; "
        f"{len(won)} won here; {len(stopped)} stopped others"
    )
    for attack in attacks:
        if attack in won or attack in stopped:
            found = mine[attack.id]
            print(f"  {attack.id}: {', '.join([*found.wins, *found.stops])}")
    if options.write:
        keep(PAGE, "attacks", table)
    return 1 if won or stopped else 0


if __name__ == "__main__":
    sys.exit(main())
