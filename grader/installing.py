"""What to install where something is missing.

No package index has the grader, so its name there is free for anybody: no command installs it by
name, but from a wheel, a hand-out or a clone.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires

PROJECT = "attention-grader"
INSTALLED = "pip install -r requirements.txt   in a hand-out; in a clone, pip install -e ."
NEWER = "pip install --upgrade ./attention_grader-….whl   with the newer one; in a clone, git pull"
OF_EXTRA = re.compile(r"""([^;]+);.*\bextra *== *["'](\w+)["']""")


def packages_of(extra: str) -> list[str]:
    """Return the packages of an extra of the grader, with their versions."""
    try:
        needed = requires(PROJECT) or []
    except PackageNotFoundError:  # it runs from a folder
        needed = []
    found = filter(None, map(OF_EXTRA.fullmatch, needed))
    return [each[1].strip() for each in found if each[2] == extra]


def install_extra(extra: str) -> str:
    """Return the command that installs what an extra needs, beside a grader that is there."""
    packages = packages_of(extra)
    if not packages:
        return f"pip install './attention_grader-….whl[{extra}]'"
    quoted = (f"'{each}'" for each in packages)
    return f"pip install {' '.join(quoted)}"
