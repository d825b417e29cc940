"""Take the screenshots in docs/images/: the real report in the real browser.

    python docs/screenshots.py      part of `make docs`; needs Chromium (make deps-system)

Beside them stands a hash of each page they show; a test says when a page has changed since.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
GRADER = (sys.executable, "-W", "ignore", "-m", "grader")
IMAGES = ROOT / "docs" / "images"
HASHES = IMAGES / "pages.txt"
SAMPLES = ROOT / "examples" / "class"
CLASS = "class"
# What the dashboard is made from: grading the class again would take a test too long.
SOURCES = (
    "statistics.py",
    "similarity.py",
    "reports/dashboard.py",
    "reports/templates/*.[cj]s*",
    "reports/templates/class.html.j2",
)
sys.path[:0] = [str(ROOT / "tests")]


@dataclass(frozen=True)
class Shot:
    """A picture of a sample student's report, or of the dashboard of the `CLASS`.

    It shows all that fits, or the part at `selector`.
    """

    student: str
    scheme: str
    width: int
    height: int
    selector: str = ""


SHOTS: Mapping[str, Shot] = {
    "report-light": Shot("s002", "light", 1000, 1240),
    "report-dark": Shot("s002", "dark", 1000, 1240),
    "diagnosis": Shot("s015", "light", 1000, 1200, "section:has(#causal_attention) .first"),
    "heads": Shot("s002", "light", 640, 1200, "section:has(#multi_head_attention) .heads-view"),
    "code": Shot("s018", "light", 1000, 1200, "section:has(#feed_forward) .first"),
    "phone": Shot("s016", "dark", 390, 844),
    "class-light": Shot(CLASS, "light", 1200, 1240),
    "class-dark": Shot(CLASS, "dark", 1200, 1240),
    "students": Shot(CLASS, "light", 1200, 900, "section:has(#students)"),
}


def class_page(folder: Path) -> Path:
    """The dashboard of the sample class, graded into a folder."""
    command = ["batch", "examples/class", "--seed", "7", "--quiet", "--out", str(folder)]
    subprocess.run([*GRADER, *command], cwd=ROOT, check=False, capture_output=True)
    return folder / "index.html"


def class_sources() -> bytes:
    """What the dashboard shows, and what it is made by."""
    paths = [path for pattern in SOURCES for path in sorted((ROOT / "grader").glob(pattern))]
    return b"".join(path.read_bytes() for path in (SAMPLES / "README.md", *paths))


def page_of(student: str) -> str:
    """The report of a sample student, without what differs from machine to machine."""
    command = ["check", f"examples/class/{student}", "--seed", "7", "--format", "html"]
    done = subprocess.run(
        [*GRADER, *command],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    return re.sub(r"<footer>.*?</footer>", "", done.stdout, flags=re.DOTALL)


def hashes() -> str:
    """A line for each student whose report is shown, and for the class."""
    students = sorted({shot.student for shot in SHOTS.values()} - {CLASS})
    pages = {student: page_of(student).encode() for student in students}
    shown = {**pages, CLASS: class_sources()}
    return "".join(
        f"{name} {hashlib.sha256(data).hexdigest()[:16]}\n" for name, data in shown.items()
    )


def main() -> int:
    """Take every picture, if a page has changed since they were taken."""
    fresh = hashes()
    taken = all((IMAGES / f"{name}.png").is_file() for name in SHOTS)
    if taken and HASHES.is_file() and HASHES.read_text("utf-8") == fresh:
        return 0
    import browser

    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, browser.started() as chromium:
        dashboard = class_page(Path(folder) / "class")
        for name, shot in SHOTS.items():
            file = dashboard
            if shot.student != CLASS:
                file = Path(folder) / "report.html"
                file.write_text(page_of(shot.student), "utf-8")
            context = chromium.new_context(
                color_scheme=shot.scheme, viewport={"width": shot.width, "height": shot.height}
            )
            page = context.new_page()
            page.goto(file.as_uri())
            shown = page.locator(shot.selector) if shot.selector else page
            shown.screenshot(path=IMAGES / f"{name}.png")
            print(f"wrote: docs/images/{name}.png")
            context.close()
    HASHES.write_text(fresh, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
