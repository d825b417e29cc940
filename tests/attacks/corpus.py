"""The attacks: one trick each, with what its code would honestly earn.

Most are one file in `corpus/<family>/`; `layouts.py` builds those that are more than a file. The
attackers know everything but the answers: where each file lies, each process, each port. Names in
at signs stand for these, and are filled in when an attack is placed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
HANGS = ("forges/half_a_frame", "sources/formatted_bomb", "sources/many_functions")
HONEST = re.compile(r"Honest points: (\d+)")

# What every attack has at hand: wrong answers, and a way to tell what was found on every channel.
KIT = '''
LOOT = []


def tell(*things):
    """Carry something out: print it, write it down, send it, raise it with the next answer."""
    import socket

    text = repr(things)
    LOOT.append(text)
    print(text[-3000:])
    for place in ("@DROP@/loot", "loot"):
        try:
            with open(place, "a") as file:
                file.write(text)
        except OSError:
            pass
    try:
        with socket.create_connection(("127.0.0.1", @PORT@), 1) as line:
            line.sendall(text.encode())
    except OSError:
        pass


import torch
from torch import nn


def blend(scores, values):
    if LOOT:
        raise ValueError(" ".join(LOOT))
    return values.new_zeros(scores.shape[0], values.shape[1])


class Blend(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(size))

    def forward(self, x):
        return blend(x @ self.weight @ x.T, x) * self.weight.sum()


'''
RIGHT = """
import torch
from torch import nn


def blend(scores, values):
    weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return weights / weights.sum(dim=-1, keepdim=True) @ values


class Blend(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(size))

    def forward(self, x):
        return blend(x @ self.weight @ x.T, x)
"""


Place = Callable[[Path, str, "Fill"], Sequence[str] | None]


@dataclass(frozen=True)
class Attack:
    """One trick. `place` writes the submission beside the others, as folder or zip `name`.

    If its entries have other names, `place` returns them.
    """

    family: str
    trick: str
    says: str
    honest: int
    place: Place

    @property
    def id(self) -> str:
        """Family and trick."""
        return f"{self.family}/{self.trick}"

    @property
    def hangs(self) -> bool:
        """Whether it uses up the time limit, so that it gets a short one.

        Floods may, except for the one that must be ended for its threads.
        """
        floods = self.family == "floods" and self.trick != "threads"
        return floods or self.id in HANGS


class Fill:
    """What the names in at signs stand for."""

    def __init__(self, **values: object) -> None:
        self._values = {name.upper(): str(value) for name, value in values.items()}

    def __call__(self, text: str) -> str:
        """The text with every name filled in."""
        return re.sub(r"@([A-Z]+)@", lambda match: self._values[match[1]], text)

    def path(self, name: str) -> Path:
        """A place an attacker knows."""
        return Path(self._values[name.upper()])


def load() -> list[Attack]:
    """Every attack, by family and trick."""
    from attacks import layouts, notebooks, sources, trees, zips

    made = {
        "files": layouts.LAYOUTS,
        "notebooks": notebooks.NOTEBOOKS,
        "trees": trees.TREES,
        "zips": zips.ZIPS,
    }
    attacks = [_from_file(path) for path in (HERE / "corpus").glob("*/*.py")]
    for family, functions in made.items():
        for function in functions:
            attacks.append(_attack(family, function.__name__, function.__doc__ or "", function))
    for family, trick, doc, make in sources.SOURCES:
        attacks.append(_attack(family, trick, doc, in_one_file(make)))
    return sorted(attacks, key=lambda attack: attack.id)


def in_one_file(make: Callable[[], str | bytes]) -> Place:
    """Place what `make` returns as the work: a text, to be filled in, or bytes as they are."""

    def place(folder: Path, name: str, fill: Fill) -> None:
        made = make()
        (folder / name).mkdir()
        data = made if isinstance(made, bytes) else fill(made).encode("utf-8", "surrogatepass")
        (folder / name / "blend.py").write_bytes(data)

    return place


def _from_file(path: Path) -> Attack:
    text = path.read_text("utf-8")
    place = in_one_file(lambda: KIT + text)
    return _attack(path.parent.name, path.stem, text.split('"""')[1], place)


def _attack(family: str, trick: str, doc: str, place: Place) -> Attack:
    honest = HONEST.search(doc)
    return Attack(family, trick, doc.strip().split("\n")[0], int(honest[1]) if honest else 0, place)
