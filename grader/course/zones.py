"""Time zones of a course, and the changes of the clock that a fixed offset does not follow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from importlib import resources
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from grader.errors import CourseError

# One zone for each way in which clocks change; a fixed offset may be that of any of them.
CHANGING = (
    *("Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "America/Chicago"),
    *("America/Denver", "America/Los_Angeles", "America/Halifax", "America/Santiago"),
    *("Australia/Sydney", "Australia/Adelaide", "Pacific/Auckland"),
)
REACH = timedelta(weeks=4)  # after the due date, in which late work and extensions are likely


def load_zone(name: str, where: str) -> ZoneInfo:
    """Return a time zone by its name; raise `CourseError`, at `where`, if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise CourseError(
            f"{where}: zone: `{name}` is no time zone; such as Europe/Berlin or America/New_York"
        ) from None
    except OSError:  # a confined process may read Python's files, but none of the system's
        file = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
        with file.open("rb") as data:
            return ZoneInfo.from_file(data, name)


def in_zone(time: datetime, zone: tzinfo, where: str) -> datetime:
    """Return a time in a zone; raise `CourseError`, at `where`, if it has a wrong offset."""
    here = time.replace(tzinfo=zone) if time.tzinfo is None else time.astimezone(zone)
    if time.utcoffset() not in (None, timedelta(), here.utcoffset()):
        says = f"the offset {offset(time)}, but {zone} has {offset(here)} then; leave it out"
        raise CourseError(f"{where} has {says}")
    return here


def offset(time: datetime) -> str:
    """Return the offset of a time from UTC, such as `+02:00`."""
    return time.isoformat()[-6:]


def change_of_clock(due: datetime | None, time: datetime) -> str:
    """Return a zone whose clock changes between a due date of fixed offset and a time, or ""."""
    if due is None or not isinstance(due.tzinfo, timezone):
        return ""
    return next((str(zone) for zone in _zones_of(due) if _differs(zone, due, time)), "")


def next_change(due: datetime | None) -> tuple[str, datetime] | None:
    """Return the first change of the clock soon after a due date with a fixed offset, and where."""
    days = range(1, REACH.days + 1) if due is not None else ()
    for time in (due + timedelta(days=day) for day in days if due is not None):
        if name := change_of_clock(due, time):
            return name, time
    return None


def _zones_of(due: datetime) -> Iterator[ZoneInfo]:
    zones = (load_zone(name, "") for name in CHANGING)
    return (zone for zone in zones if due.astimezone(zone).utcoffset() == due.utcoffset())


def _differs(zone: ZoneInfo, due: datetime, time: datetime) -> bool:
    return time.replace(tzinfo=zone).utcoffset() != due.utcoffset()
