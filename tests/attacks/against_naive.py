"""Take the evidence of each attack against the naive grader, as `ours` does against this one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attacks import naive
from attacks.corpus import Attack
from attacks.world import BIG, Evidence, Listener, World, canaries, free_port


def run(root: Path, attacks: Sequence[Attack]) -> dict[str, Evidence]:
    """Every attack in a world of its own."""
    listener, server = Listener(), naive.Server()
    evidence = {}
    try:
        for number, attack in enumerate(attacks):
            world = World(root / str(number), listener)
            evidence[attack.id] = _run_one(world, attack, server)
    finally:
        server.close()
    return evidence


def _run_one(world: World, attack: Attack, server: naive.Server) -> Evidence:
    naive.prepare(world.root)
    spare = free_port()
    (world.root / "spare").write_text(str(spare))
    for name in ("s001", "s003"):
        world.add_neighbour(name)
    attack.place(world.submissions, "s002", world.fill("s001", "@PID@", spare))
    world.settle()
    seen = server.grade(world.root)
    found = Evidence(honest=attack.honest, traces=seen["traces"], harm=seen["harm"])
    before, mine, after = (naive.marks(world.root, name) for name in naive.NAMES)
    if mine is not None:
        found.points = sum(
            naive.POINTS.get(test, 0) for test, how in mine.items() if how == "passed"
        )
    if before is None or after is None:
        found.stops.append("ended the grading of the class")
    elif before != after:
        found.harm.append("changed the next student's marks")
    told = [world.root / "output", world.out / "s002.json", *world.drop.iterdir()]
    for path in told:
        if path.is_file() and path.stat().st_size < BIG:
            found.loot += canaries(path.read_bytes(), path.name)
    disk = sum(path.lstat().st_blocks * 512 for path in world.root.rglob("*"))
    if disk > BIG:
        found.harm.append(f"filled the disk with {disk >> 20} MiB")
    found.loot += world.listener.heard()
    ours = {"test_hidden.py", "reference_blend.py"}  # copied there by the grader itself
    found.traces += [
        trace
        for trace in world.traces()
        if Path(trace).name not in ours and "__pycache__" not in trace and "s002" not in trace
    ]
    return found
