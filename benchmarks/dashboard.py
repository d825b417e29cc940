"""How fast the class page opens and searches, measured in headless Chromium.

    python benchmarks/dashboard.py              3,000 students
    python benchmarks/dashboard.py --students 500

It needs Chromium (make deps-system). Exits with 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests")]

import browser  # noqa: E402, which stands beside the tests
from made_class import class_of  # noqa: E402

from grader.reports import dashboard  # noqa: E402

WINDOW = {"width": 1440, "height": 900}
MAX_PAINT, MAX_KEY = 1000.0, 50.0  # milliseconds
ROUNDS = 3  # each opens the page anew; the fastest counts, as other processes only add to it
TYPED = ("s01", "s0123", "b", "zoe", "user", "s2")
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# From the input event to the end of layout, which is forced.
KEY = """text => { const q = document.getElementById("q"); q.value = text;
    const start = performance.now(); q.dispatchEvent(new Event("input"));
    void document.body.offsetHeight; return performance.now() - start; }"""


def main() -> int:
    """Measure a synthetic class, print what came out, and compare it with the limits."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--students", type=int, default=3000)
    students = parser.parse_args().students
    with TemporaryDirectory() as folder, browser.started() as started:
        path = Path(folder) / "index.html"
        path.write_text(dashboard.render(class_of(students)), "utf-8")
        tab = browser.Tab(started)
        paints, rounds = zip(*(opened(tab, path) for _ in range(ROUNDS)))
        paint, keys = min(paints), [min(each) for each in zip(*rounds)]
        size = path.stat().st_size / 1024
    print(f"{students:,} students, {size:,.0f} KiB")
    print(f"first contentful paint   {paint:6.0f} ms   at most {MAX_PAINT:.0f}")
    print(f"a key, median            {statistics.median(keys):6.1f} ms")
    print(f"a key, slowest           {max(keys):6.1f} ms   at most {MAX_KEY:.0f}")
    return int(paint > MAX_PAINT or max(keys) > MAX_KEY)


def opened(tab: browser.Tab, path: Path) -> tuple[float, list[float]]:
    """Return the milliseconds until the page is painted, and those of each key."""
    page = tab.open(path.as_uri(), viewport=WINDOW)
    page.wait_for_function(f"{PAINT} !== undefined")
    return page.evaluate(PAINT), typed(page)


def typed(page: Any) -> list[float]:
    """Return the milliseconds that each key of the searches takes."""
    prefixes = [text[:length] for text in TYPED for length in range(1, len(text) + 1)]
    return [page.evaluate(KEY, prefix) for prefix in prefixes]


if __name__ == "__main__":
    sys.exit(main())
