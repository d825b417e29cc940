"""Which tests share a process, if several processes run them."""

from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling

# Files of a few long tests, each of which may run in any process.
SPLIT = ("tests/test_validate.py",)


class ByFile(LoadFileScheduling):
    """The tests of a file share a process, so that what they share is made once."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return nodeid if file in SPLIT else file
