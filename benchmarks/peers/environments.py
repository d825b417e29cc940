"""The virtual environments of the tools, in build/peers/; each is made once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "peers"
OURS = "ours"
PACKAGES: dict[str, tuple[str, ...]] = {
    OURS: ("-e", ".[cluster]"),
    "otter": ("otter-grader[grading]==7.0.0", "-e", "."),
    "nbgrader": ("nbgrader==0.9.6", "-e", "."),
    "gradescope": ("gradescope-utils==0.5.0", "-e", "."),
}


def python(name: str) -> Path:
    """Return the interpreter of environment `name`; make the environment first if it is stale."""
    folder = BUILD / name / "venv"
    stamp = folder / "installed"
    wanted = _wanted(name)
    if not stamp.is_file() or stamp.read_text("utf-8") != wanted:
        print(f"installing {PACKAGES[name][0]} for {name} in {folder}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        _make(folder, PACKAGES[name])
        stamp.write_text(wanted, "utf-8")
    return folder / "bin" / "python"


def _wanted(name: str) -> str:
    """Return a text with everything that an environment depends on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    parts = (project[part] for part in ("dependencies", "optional-dependencies", "entry-points"))
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    return "\n".join([*PACKAGES[name], *map(repr, parts), constraints])


def _make(folder: Path, packages: Sequence[str]) -> None:
    run([sys.executable, "-m", "venv", folder])
    install: list[str | Path] = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    # Without the constraint on torch, pip would download a CUDA build.
    run([*install, "--disable-pip-version-check", "-c", "constraints.txt", "torch", *packages])
    site = next((folder / "lib").glob("python3*/site-packages"))
    (site / "harness.pth").write_text(f"{Path(__file__).parent}\n", "utf-8")


def versions(name: str, packages: Sequence[str]) -> str:
    """Return the versions of some packages in environment `name`."""
    code = "import sys, importlib.metadata as m\nfor p in sys.argv[1:]: print(p, m.version(p))"
    return ", ".join(run([python(name), "-c", code, *packages]).splitlines())


def run(command: Sequence[str | Path], cwd: Path = ROOT) -> str:
    """Run a command that must succeed; return what it prints."""
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"[-4000:])
    return done.stdout
