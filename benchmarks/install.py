"""What students install: how many packages, how large, and how long it takes.

    python benchmarks/install.py            print it
    python benchmarks/install.py --write    and keep it in docs/ci.md

The packages come from the indexes that pip is configured for, and torch from PyTorch's own, without
CUDA.
"""

from __future__ import annotations

import argparse
import platform
import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from grader.commands.own_wheel import WHEEL_NAME, make_wheel

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from pages import keep

PAGE = Path(__file__).parent.parent / "docs" / "ci.md"
CPU = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
SAYS = """\
Students download torch without CUDA: {packages} packages, {download:.1f} GB to download and
{disk:.1f} GB on disk with Python {python} on {system}. Without the download, it takes
{seconds:.0f} seconds of processor time.
"""


def measured(folder: Path) -> str:
    """Return what an install of this grader costs, in a sentence."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    (folder / WHEEL_NAME).write_bytes(make_wheel())
    wheel, packages = str(folder / WHEEL_NAME), folder / "packages"
    subprocess.run([*pip, "download", *CPU, "-d", str(packages), wheel], check=True)
    before = size_of(folder / "venv")
    offline = ["--no-index", "--find-links", str(packages)]
    start = cpu_of_children()
    subprocess.run([*pip, "install", *offline, wheel], check=True)
    return SAYS.format(
        packages=len([*packages.iterdir()]),
        download=size_of(packages) / 1e9,
        disk=(size_of(folder / "venv") - before) / 1e9,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        system=platform.system(),
        seconds=cpu_of_children() - start,
    )


def cpu_of_children() -> float:
    """Return the seconds of processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the numbers into their page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        numbers = measured(Path(scratch))
    print(numbers)
    if options.write:
        keep(PAGE, "install", numbers)
