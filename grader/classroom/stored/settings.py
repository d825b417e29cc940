"""The settings of a class, each stored twice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from grader.classroom.stored.rows import Check, Rows, decoded

EARLIER = "earlier"  # the setting with the results folders whose late days count against a budget
SNIPPETS = "snippets"  # the setting with phrases that teachers use again, by name
WAIVERS = "waivers"  # the setting with what teachers have waived, the oldest first
FREE_DAYS_USED = "free_days_used"  # the setting with the days that each student used up there
TWIN = " (copy)"  # the end of the key under which a setting is stored again
_KINDS: Mapping[str, Any] = {
    "request": dict[str, str],
    "course_list": str,
    "roster": dict[str, Any],
    "groups": dict[str, Any],
    "rules": dict[str, str],
    "erased": list[str],
    EARLIER: list[str],
    FREE_DAYS_USED: dict[str, float],
    WAIVERS: list[dict[str, Any]],
    SNIPPETS: dict[str, str],
    "seed": int,
    "published_epoch": Annotated[int, msgspec.Meta(ge=0)],
    "pseudonyms": Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})+$")],
    "secret": Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})+$")],
}


def _is_setting(row: Sequence[Any]) -> bool:
    key, value = row
    decoded(value, _KINDS.get(key.removesuffix(TWIN), Any))
    return True


class Settings(Rows):
    """The settings of a class."""

    CHECKS: ClassVar[Mapping[str, Check]] = {"settings": _is_setting}

    def get(self, key: str) -> Any:
        """Return a setting, or None."""
        for name in (key, f"{key}{TWIN}"):
            for _, value in self._rows("settings", "WHERE key = ?", name):
                return json.loads(value)
        return None

    def put(self, key: str, value: Any) -> None:
        """Store a setting twice, so that one damaged copy loses nothing, such as the secret."""
        text = json.dumps(value)
        with self.writing():
            self._put("settings", [key, text], [f"{key}{TWIN}", text])
            self._repaired("settings", exercise=key)
