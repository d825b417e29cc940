"""Dates and times as people, spreadsheets and Moodle write them, in several languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo

MAX_LENGTH = 100  # characters; no time is longer
MAX_YEAR = 9000
EXAMPLE = "2026-11-30T23:59+01:00"
# Each month in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish; three
# letters of a name are enough if no other month begins with them.
MONTHS = (
    "january januar jänner janvier enero gennaio janeiro januari stycznia styczeń",
    "february februar feber février febrero febbraio fevereiro februari lutego luty",
    "march märz mars marzo março maart mrt marca marzec",
    "april avril abril aprile kwietnia kwiecień",
    "may mai mayo maggio maio mei maja maj",
    "june juni juin junio giugno junho czerwca czerwiec",
    "july juli juillet julio luglio julho lipca lipiec",
    "august août agosto augustus sierpnia sierpień",
    "september septembre septiembre settembre setembro września wrzesień",
    "october oktober octobre octubre ottobre outubro października październik",
    "november novembre noviembre novembro listopada listopad",
    "december dezember décembre diciembre dicembre dezembro grudnia grudzień",
)
_WEEKDAY = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?\.?,?\s+")
_YEAR = r"(?P<year>[0-9]{4}|[0-9]{2})(?![0-9])"
_DAY = r"(?P<day>[0-9]{1,2})"
_SWAPPABLE = re.compile(rf"(?P<first>[0-9]{{1,2}})([/-])(?P<second>[0-9]{{1,2}})\2{_YEAR}")
_DATES = (
    re.compile(rf"(?P<year>[0-9]{{4}})([-/.])(?P<month>[0-9]{{1,2}})\2{_DAY}(?![0-9])"),
    re.compile(rf"{_DAY}\.\s?(?P<month>[0-9]{{1,2}})\.\s?{_YEAR}"),
    _SWAPPABLE,
    re.compile(
        rf"{_DAY}(?:\.|er|º|st|nd|rd|th)?\s+(?:de\s+)?(?P<name>[^\W\d_]+)\.?,?\s+(?:de\s+)?{_YEAR}"
    ),
    re.compile(rf"(?P<name>[^\W\d_]+)\.?\s+{_DAY}(?:st|nd|rd|th)?,?\s+{_YEAR}"),
)
_CLOCK = re.compile(
    r"(?:[,\s]+(?:[^\W\d_]+\.?\s+){0,2}|t)"  # such as ", " or " at " or " a las "
    r"(?P<hour>[0-9]{1,2})[:.h](?P<minute>[0-9]{2})(?:[:.](?P<second>[0-9]{2})(?:[.,][0-9]+)?)?"
    r"(?:\s*(?P<half>[ap])m)?(?:\s*(?P<zone>z|utc|gmt|[+-][0-9]{2}:?[0-9]{2}))?"
)
_HALF = re.compile(r"\b([ap])\.?\s?m\b\.?")


class UnreadableTimeError(ValueError):
    """A text is no time, or could be two times; `remedy` says how to write it."""

    def __init__(self, why: str, remedy: str = f"write it as {EXAMPLE}") -> None:
        super().__init__(why)
        self.remedy = remedy


def read_time(text: str, zone: tzinfo | None, day_first: bool | None = None) -> datetime:
    """Return the time in a text; in `zone`, unless the text names a zone.

    `day_first` says whether 11/8/2026 is in August; None leaves that open. Raises
    `UnreadableTimeError` for any other text, and for a time that could be two.
    """
    plain = _plain(text)
    time = _iso(plain) or _written(plain, day_first)
    if not 1970 <= time.year <= MAX_YEAR:
        raise UnreadableTimeError("is no time of a course")
    if time.tzinfo is None and zone is None:
        remedy = f"write it as {EXAMPLE}, or give `due` in course.toml, whose zone then counts"
        raise UnreadableTimeError("has no time zone", remedy)
    return time if time.tzinfo else time.replace(tzinfo=zone)


def day_comes_first(texts: Iterable[str]) -> bool | None:
    """Return whether dates such as 11/8/2026 begin with the day; None if no text proves it."""
    starts = (start for text in texts for start in _starts(_plain(text)))
    found = [match for start in starts if (match := _SWAPPABLE.match(start))]
    pairs = [(int(match["first"]), int(match["second"])) for match in found]
    day = any(second <= 12 < first for first, second in pairs)
    month = any(first <= 12 < second for first, second in pairs)
    return None if day == month else day


def has_twelve_hours(texts: Iterable[str]) -> bool:
    """Return whether one of the texts ends in AM or PM."""
    return any(_HALF.search(_plain(text)) for text in texts)


def _plain(text: str) -> str:
    """Return a text in lower case, with plain spaces, and `pm` for any way to write it."""
    folded = unicodedata.normalize("NFKC", text[: MAX_LENGTH + 1]).casefold()
    return _HALF.sub(r"\1m", " ".join(folded.split()))


def _iso(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    if ":" not in text and "t" not in text:
        raise UnreadableTimeError("has no time of day")
    return time


def _written(text: str, day_first: bool | None) -> datetime:
    for start in _starts(text):
        for form in _DATES:
            if (date := form.match(start)) and (clock := _CLOCK.fullmatch(start, date.end())):
                return _time(date, clock, day_first)
            if date and date.end() == len(start):
                raise UnreadableTimeError("has no time of day")
    raise UnreadableTimeError("cannot be read as a date and time")


def _starts(text: str) -> Iterator[str]:
    """Yield the text, and the text without the name of a weekday."""
    if len(text) <= MAX_LENGTH:
        yield text
        if weekday := _WEEKDAY.match(text):
            yield text[weekday.end() :]


def _time(date: re.Match[str], clock: re.Match[str], day_first: bool | None) -> datetime:
    year = int(date["year"]) + (2000 if len(date["year"]) == 2 else 0)
    month, day = _month_and_day(date, day_first)
    try:
        return datetime(
            *(year, month, day, _hour(clock), int(clock["minute"]), int(clock["second"] or 0)),
            tzinfo=_zone(clock["zone"]),
        )
    except ValueError:
        raise UnreadableTimeError("is no time that exists") from None


def _month_and_day(date: re.Match[str], day_first: bool | None) -> tuple[int, int]:
    found = date.groupdict()
    if "name" in found:
        return _month(found["name"]), int(found["day"])
    if "month" in found:
        return int(found["month"]), int(found["day"])
    first, second = int(found["first"]), int(found["second"])
    if first == second or second > 12:
        return first, second
    if first > 12:
        return second, first
    if day_first is None:
        iso = "{}-{:02}-{:02}".format
        year = found["year"] if len(found["year"]) == 4 else f"20{found['year']}"
        raise UnreadableTimeError(
            "could be two days: nothing says whether the day or the month comes first",
            f"write it as {iso(year, first, second)} or as {iso(year, second, first)}, "
            "with the time behind it",
        )
    return (second, first) if day_first else (first, second)


def _month(name: str) -> int:
    """Return the number of a month by its name, or by a part of it that no other month has."""
    wanted = _bare(name)
    exact = {n for n, names in enumerate(MONTHS, 1) if wanted in map(_bare, names.split())}
    found = exact or {
        number
        for number, names in enumerate(MONTHS, start=1)
        if len(wanted) >= 3 and any(_bare(each).startswith(wanted) for each in names.split())
    }
    if len(found) != 1:
        raise UnreadableTimeError("names no month that is known here")
    return found.pop()


def _bare(word: str) -> str:
    """Return a word without accents."""
    parts = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def _hour(clock: re.Match[str]) -> int:
    hour, half = int(clock["hour"]), clock["half"]
    if half is None or (half == "p" and hour > 12):
        return hour
    if not 1 <= hour <= 12:
        raise ValueError("no such hour before noon")
    return hour % 12 + (12 if half == "p" else 0)


def _zone(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    if not text.startswith(("+", "-")):
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
