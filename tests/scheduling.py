"""Which tests share a process, if several processes run them."""

from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling

# Files of a few long tests, each of which may run in any process.
SPLIT = ("tests/test_validate.py",)
# Files that need what the known mistakes of the core answer. At the same time, each would work it
# out for itself; one after the other, the first does it for all.
TOGETHER = ("tests/test_examples.py", "tests/test_pages.py", "tests/test_project.py")


class ByFile(LoadFileScheduling):
    """The tests of a file share a process, so that what they share is made once."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        if file in SPLIT:
            return nodeid
        return TOGETHER[0] if file in TOGETHER else file
