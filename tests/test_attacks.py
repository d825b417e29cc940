"""Nobody gets in: every attack of the corpus earns what its code is worth, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from attacks import against_naive, ours
from attacks.corpus import RIGHT, Attack, Fill, load
from attacks.table import PAGE, REMAINS
from attacks.world import Evidence, Listener, World, free_port
from commandline import Cli
from pages import part
from turns import in_turn

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines")
ATTACKS = load()
# What each of these is told; they are always tried.
TOLD = {
    "floods/loops": "did not finish",
    "floods/threads": "more than 64 threads",
    "reads/hidden_tests": "no other file, process or connection",
    "network/connects": "no other file, process or connection",
    "forges/second_reply": "interfered with the grader's connection",
    "files/symbolic_link": "is a link",
    "files/zip_bomb": "unpacks to more bytes than the limit allows",
    "cheats/threads_it": "does the work that this exercise asks you to write",
}
# `make attacks` tries them all, here as well as on plain pytest, as whoever calls it.
TRIED = [*dict.fromkeys([*in_turn(ATTACKS), *(one for one in ATTACKS if one.id in TOLD)])]
NAIVE_SAMPLE = 10  # every tenth attack of these families is tried on plain pytest
OF_THE_PROCESS = (
    *("cheats", "ends", "files", "forges", "lies", "network"),
    *("patches", "persists", "reads", "walks", "zygote"),
)
ORDINARY_SAMPLE = 24  # and one in so many by a user without privileges, where root tries more
NOBODY = 65534


@pytest.fixture(scope="module")
def ordinary() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A part of the corpus as a user without privileges, beside what else is tested meanwhile."""
    table = str(HERE / "attacks" / "table.py")
    command = [sys.executable, "-B", table, "--ours", "--every", str(ORDINARY_SAMPLE)]
    with TemporaryDirectory() as place:
        os.chown(place, NOBODY, NOBODY)
        run = subprocess.Popen(
            as_nobody(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=place,
            env={"PATH": os.environ["PATH"], "TMPDIR": place},
        )
        yield run, place
        run.kill()
        run.wait()


@pytest.fixture(scope="module")
def evidence(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Evidence]:
    """The attacks, graded as one class with an honest student between any two attackers."""
    if os.geteuid() == 0:
        request.getfixturevalue("ordinary")  # starts
    return ours.run(tmp_path_factory.mktemp("attacks"), TRIED)


@pytest.mark.slow
@pytest.mark.parametrize("attack", TRIED, ids=lambda attack: attack.id)
def test_an_attack_wins_nothing(attack: Attack, evidence: dict[str, Evidence]) -> None:
    found = evidence[attack.id]
    if attack.family != REMAINS:
        assert found.wins == []
        return
    # A known risk: it gets no further than docs/security.md says.
    assert found.traces == found.harm == []
    assert all(loot.startswith("told the inputs") for loot in found.loot)


@pytest.mark.slow
@pytest.mark.parametrize("attack", TRIED, ids=lambda attack: attack.id)
def test_an_attack_keeps_nobody_from_being_graded(
    attack: Attack, evidence: dict[str, Evidence]
) -> None:
    assert evidence[attack.id].stops == []


@pytest.mark.slow
def test_every_attacker_is_told_why(evidence: dict[str, Evidence]) -> None:
    silent = [name for name, found in evidence.items() if not found.said and found.points < 10]
    assert silent == []
    wrong = {name: evidence[name].said for name in TOLD if TOLD[name] not in evidence[name].said}
    assert wrong == {}


TYPICAL = ("ends/leaves_at_import", "files/fifo", "floods/segfault", "forges/oversized")


@pytest.mark.slow
def test_the_command_ends_as_for_any_class(cli: Cli, tmp_path: Path) -> None:
    """An attack is a submission that fails, not a failure of the grader."""
    world = World(tmp_path, Listener())
    fill = world.fill("s001", os.getpid(), free_port())
    for number, attack in enumerate(attack for attack in ATTACKS if attack.id in TYPICAL):
        attack.place(world.submissions, f"s{number:03}", fill)
    said = cli("batch", world.submissions, "--out", world.out, "--course", world.course)
    assert said.code == 1
    assert "lost" not in said.err
    assert said.out.count("  0 / 10  ") == len(TYPICAL)


def test_the_corpus_is_large_and_every_family_is_there() -> None:
    families = {attack.family for attack in ATTACKS}
    assert len(ATTACKS) >= 400
    assert len(families) == 21
    assert len({attack.says for attack in ATTACKS}) == len(ATTACKS)


def honest() -> Attack:
    """No attack at all."""

    def place(folder: Path, name: str, fill: Fill) -> None:
        (folder / name).mkdir()
        (folder / name / "blend.py").write_text(RIGHT)

    return Attack("none", "honest", "Honest work.", 10, place)


@pytest.mark.slow
@pytest.mark.in_turn
def test_the_corpus_bites(tmp_path: Path) -> None:
    """The same attacks win in large part against pytest in one process; honest work does not."""
    sample = [attack for attack in ATTACKS if attack.family in OF_THE_PROCESS][::NAIVE_SAMPLE]
    found = against_naive.run(tmp_path, [honest(), *sample])
    control = found.pop("none/honest")
    assert (control.points, control.wins) == (10, [])
    won = [name for name, evidence in found.items() if evidence.wins or evidence.stops]
    assert len(won) >= 0.6 * len(sample), sorted(set(found) - set(won))


def test_the_page_tells_of_every_attack() -> None:
    lines = part(PAGE, "attacks").splitlines()
    told = set()
    for line in lines:
        # Tricks that begin alike, up to a colon, share a line.
        start, colon, rests = line.removeprefix("- ").rstrip(".").partition(": ")
        told |= {start + colon + rest for rest in rests.split("; ")}
    missing = [one.id for one in ATTACKS if one.says.rstrip(".") not in told]
    assert not missing, "make attacks   writes the table"
    total = sum(attack.family != REMAINS for attack in ATTACKS)
    summary = next(line for line in lines if line.startswith("| **all**"))
    assert summary.startswith(f"| **all** | **{total}** |")
    assert summary.endswith(f"| **0** | **{total}** |")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="this run is an ordinary user's already")
def test_an_ordinary_users_grader_is_as_safe(ordinary: tuple[subprocess.Popen[str], str]) -> None:
    run, place = ordinary
    out, err = run.communicate()
    assert run.returncode == 0, out[-2000:] + err[-2000:]
    assert "as an ordinary user; 0 won here; 0 stopped others" in out
    assert os.listdir(place) == []


def as_nobody(command: list[str]) -> list[str]:
    """The command as an ordinary user, who may not be able to reach root's own Python."""
    become = [
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--no-new-privs",
    ]
    for program in ("setpriv", "unshare"):
        assert shutil.which(program), f"{program} is missing: apt install util-linux"
    reachable = subprocess.run([*become, "test", "-x", sys.executable], check=False).returncode == 0
    real = Path(os.path.realpath(sys.executable))
    if reachable or not real.is_relative_to("/root"):
        return [*become, *command]
    # Root's home is closed to others: in a view of its own, all but the Python in it is hidden.
    top = Path(*real.parts[:3])
    script = (
        'set -e; mkdir -p "$1"; mount --bind "$2" "$1"; mount -t tmpfs -o mode=755 none /root; '
        'mkdir -p "$2"; mount --bind "$1" "$2"; shift 2; exec "$@"'
    )
    aside = "/tmp/python-for-everybody"
    view = ["unshare", "--mount", "sh", "-c", script, "sh", aside, str(top)]
    return [*view, *become, *command]
