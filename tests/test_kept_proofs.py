"""A kept proof holds as long as the code that it runs is the same, and no longer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import grader.commands.kept_proofs as kept
from grader.commands.import_closure import PACKAGE, modules_run_by

ROOTS = (*kept.ROOTS, "grader.authors", "grader.testing")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the grader's own code."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / "grader", ignore=ignored))


def hash_with(package: Path, file: str, line: str) -> str:
    """Return the hash of the engine with one more line in a file of it, which is then put back."""
    path = package / file
    before = path.read_text("utf-8")
    path.write_text(f"{before}\n{line}\n", "utf-8")
    kept.hash_of_modules.cache_clear()
    try:
        return kept.hash_of_modules(ROOTS, package)
    finally:
        path.write_text(before, "utf-8")
        kept.hash_of_modules.cache_clear()


def test_the_key_of_a_proof_covers_what_it_runs_and_nothing_else(package: Path) -> None:
    now = kept.hash_of_modules(ROOTS, package)
    run = [
        *("report.py", "errors.py", "testing.py", "commands/proving.py", "grading/plugin.py"),
        *("submissions/submission.py", "sandbox/worker/server.py", "grading/diagnosis/search.py"),
        *("sandbox/confinement/seccomp.py", "sandbox/host/connection.py"),
        "course/known_mistakes.py",
    ]
    for file in run:
        assert hash_with(package, file, "BROKEN = 1") != now, file
        assert hash_with(package, file, "# a remark") == now, file
    for file in ("reports/text.py", "classroom/storage.py", "commands/batch.py", "jupyter.py"):
        assert hash_with(package, file, "BROKEN = 1") == now, file


def test_the_key_covers_every_module_that_a_grading_process_has_imported() -> None:
    """What a proof has loaded is in the closure, whoever imported it."""
    code = (
        "import sys\n"
        "import grader.commands.proving, grader.grading.grader, grader.grading.suite\n"
        "import grader.authors, grader.testing, grader.grading.plugin\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] == 'grader'))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {Path(file) for file in said.stdout.split()}
    assert len(loaded) > 50
    assert loaded - {*modules_run_by(ROOTS)} == set()


@pytest.mark.parametrize("other", ["python", "pytest", "torch"])
def test_the_key_covers_the_versions_of_what_a_proof_runs_on(
    monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    roots = ("grader.errors",)
    now, real = kept.hash_of_modules(roots), kept.version
    if other == "python":
        monkeypatch.setattr(kept.sys, "version_info", (3, 99, 0))
    monkeypatch.setattr(kept, "version", lambda name: "0.1" if name == other else real(name))
    assert kept.hash_of_modules.__wrapped__(roots) != now


@pytest.mark.in_turn
@pytest.mark.slow
def test_a_broken_report_is_proven_again(package: Path, tiny_copy: Path, tmp_path: Path) -> None:
    def validate() -> str:
        said = subprocess.run(
            [sys.executable, "-m", "grader", "validate", "scale", "--course", str(tiny_copy)],
            cwd=package.parent,
            env=dict(os.environ, PYTHONPATH=str(package.parent), XDG_CACHE_HOME=str(tmp_path)),
            capture_output=True,
            text=True,
            check=False,
        )
        return said.stdout + said.stderr

    assert "reference/scale/" not in validate()
    assert [*tmp_path.glob("attention-grader/*/*")]  # it is kept
    path = package / "report.py"
    text = path.read_text("utf-8")
    total = "return sum(exercise.points for exercise in self.exercises)"
    assert text.count(total) == 1
    path.write_text(text.replace(total, f"{total} + 1"), "utf-8")
    assert "test_hidden.py: the stub earns 1 points" in validate()
