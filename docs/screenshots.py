"""Take the screenshots in docs/images/: real reports in a real browser.

    python docs/screenshots.py      part of `make docs`; needs Chromium (make deps-system)

pages.txt, in the same folder, holds a hash of each page shown; a test fails if a page has changed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from grader.__main__ import run
from grader.reports import dashboard

ROOT = Path(__file__).parent.parent
GRADER = (sys.executable, "-W", "ignore", "-m", "grader")
IMAGES = ROOT / "docs" / "images"
HASHES = IMAGES / "pages.txt"
SAMPLES = ROOT / "examples" / "class"
CLASS = "class"
CROWD, MANY = "crowd", 3000  # a class of so many students who do not exist
# What the dashboard is made from; a test that grades the class again would take too long.
SOURCES = (
    "classroom/statistics.py",
    "classroom/mistakes.py",
    "classroom/similarity.py",
    "reports/dashboard.py",
    "reports/summary.py",
    "reports/templates/*.[cj]s*",
    "reports/templates/class.html.j2",
    "reports/templates/students.html.j2",
)
sys.path[:0] = [str(ROOT / "tests")]


@dataclass(frozen=True)
class Shot:
    """A screenshot of a sample student's report, or of the dashboard for the student `CLASS`
    or `CROWD`.

    It shows the part at `selector`, or without one the part of the page that fits.
    `width` and `height` are those of the window, in pixels.
    """

    student: str
    width: int
    height: int
    selector: str = ""


SHOTS: Mapping[str, Shot] = {
    "report-light": Shot("s002", 1000, 1240),
    "diagnosis": Shot("s015", 1000, 1200, "section:has(#causal_attention) .first"),
    "heads": Shot("s002", 640, 1200, "section:has(#multi_head_attention) .heads-view"),
    "class-light": Shot(CLASS, 1200, 1240),
    "crowd-light": Shot(CROWD, 1440, 900),
}


def class_page(folder: Path) -> Path:
    """Grade the sample class into a folder and return its dashboard."""
    command = ["batch", "examples/class", "--seed", "7", "--quiet", "--out", str(folder)]
    subprocess.run([*GRADER, *command], cwd=ROOT, check=False, capture_output=True)
    return folder / "index.html"


def class_sources() -> bytes:
    """Return the content of all files that decide what the dashboard shows."""
    paths = [path for pattern in SOURCES for path in sorted((ROOT / "grader").glob(pattern))]
    return b"".join(path.read_bytes() for path in (SAMPLES / "README.md", *paths))


def page_of(student: str) -> str:
    """Return a sample student's report as HTML, without the footer: it depends on the machine."""
    command = ["check", f"examples/class/{student}", "--seed", "7", "--format", "html"]
    # In this process, which imports torch only once.
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as page:
        run(command)
    return re.sub(r"<footer>.*?</footer>", "", page.getvalue(), flags=re.DOTALL)


def hashes() -> str:
    """Return a line with a hash for each student whose report is shown, and for the class."""
    students = sorted({shot.student for shot in SHOTS.values()} - {CLASS, CROWD})
    pages = {student: page_of(student).encode() for student in students}
    shown = {**pages, CLASS: class_sources()}
    return "".join(
        f"{name} {hashlib.sha256(data).hexdigest()[:16]}\n" for name, data in shown.items()
    )


def main() -> int:
    """Take all screenshots again if a page has changed since they were taken."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    fresh = hashes()
    taken = all((IMAGES / f"{name}.png").is_file() for name in SHOTS)
    if taken and HASHES.is_file() and HASHES.read_text("utf-8") == fresh:
        return 0
    # Playwright, which the test of the hashes spares.
    import browser
    from made_class import class_of

    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, browser.started() as chromium:
        sample = class_page(Path(folder) / "class")
        crowd = Path(folder) / "crowd.html"
        crowd.write_text(dashboard.render(class_of(MANY)), "utf-8")
        for name, shot in SHOTS.items():
            file = {CLASS: sample, CROWD: crowd}.get(shot.student)
            if file is None:
                file = Path(folder) / "report.html"
                file.write_text(page_of(shot.student), "utf-8")
            context = chromium.new_context(
                color_scheme="light", viewport={"width": shot.width, "height": shot.height}
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
