"""Pseudonyms of the students of a results folder, and texts without what tells who they are.

A pseudonym follows from the student's id and a random key in the ledger, so it is the same in each
run, another one in each folder, and nobody without the ledger can work it out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import re
import secrets
from base64 import b32encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import TypeVar

from grader.classroom.ledger import Ledger
from grader.classroom.similarity import COMMON_SHARE, is_text_for_people, pieces
from grader.report import Adjustment, Comment, ExerciseResult, Frame, MarkStep, Person, Report
from grader.submissions.submission import Submission

KEY = "pseudonyms"  # the setting with the key
PREFIX = "anon-"
LENGTH = 8  # letters of a pseudonym
HIDDEN = "…"  # in the place of a file's name
FEWEST = 3  # letters or digits of a name's part or an id that is looked for in texts
FEW = 5  # submissions; a word in more of them, and in more than a small share, is no name
_WORD = re.compile(r"[^\W_]+")
_NAME_PART = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r"`[^`]*`")  # in flags and notes, the names of files
T = TypeVar("T")


class Pseudonyms:
    """The pseudonyms of a class.

    `texts` are the files of all submissions: what many of them say is a word, and no name.
    """

    def __init__(self, ledger: Ledger, texts: Iterable[str] = ()) -> None:
        key = ledger.get(KEY)
        if key is None:
            key = secrets.token_hex(32)
            ledger.put(KEY, key)
        self._key = bytes.fromhex(key)
        missing = dict(ledger.missing())
        students = sorted({*ledger.students(), *missing})
        self._people = {student: ledger.person(student) for student in students}
        self.names = {student: self._pseudonym(student) for student in students}
        self.students = {pseudonym: student for student, pseudonym in self.names.items()}
        self._ordinary = _ordinary_words(texts)
        self._identifiers = self._by_first_word()

    def _pseudonym(self, student: str) -> str:
        digest = hmac.digest(self._key, student.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return PREFIX + b32encode(digest).decode().lower()[:LENGTH]

    def _by_first_word(self) -> Mapping[str, list[tuple[str, str]]]:
        """Return each identifier with its student, the longest first, by its first word."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for student, person in self._people.items():
            who = (person.beside(student), student, person.name, person.login, person.email)
            for identifier in {*who, person.number, *_spellings(person.name)}:
                word = _WORD.search(identifier)
                if word and self._is_telling(identifier):
                    found[word[0].casefold()].append((identifier[word.start() :], student))
        for own in found.values():
            own.sort(key=lambda each: -len(each[0]))
        return found

    def text(self, text: str) -> str:
        """Return a text with pseudonyms in the place of everybody's ids, names and addresses."""
        parts, end = [], 0
        for word in _WORD.finditer(text):
            if word.start() < end:
                continue
            for identifier, student in self._identifiers.get(word[0].casefold(), ()):
                after = word.start() + len(identifier)
                if text[word.start() : after].casefold() == identifier.casefold() and not (
                    identifier[-1].isalnum() and text[after : after + 1].isalnum()
                ):
                    parts += [text[end : word.start()], self.names[student]]
                    end = after
                    break
        return "".join([*parts, text[end:]])

    def remark(self, text: str, student: str) -> str:
        """Return a text that a person or a reader of files wrote: no part of the name is left."""
        shown = self.text(_QUOTED.sub(HIDDEN, text))
        return self._without_parts(shown, student)

    def _without_parts(self, text: str, student: str) -> str:
        person = self._people.get(student, Person())
        parts = [part for part in _NAME_PART.findall(person.name) if self._is_name(part)]
        if not parts:
            return text
        own = rf"(?<![^\W_])(?:{'|'.join(map(re.escape, parts))})(?![^\W_])"
        return re.sub(own, self.names.get(student, HIDDEN), text, flags=re.IGNORECASE)

    def _is_name(self, part: str) -> bool:
        return len(part) >= FEWEST and part.casefold() not in self._ordinary

    def _is_telling(self, identifier: str) -> bool:
        """Return whether an identifier can be told from ordinary words and numbers in a text."""
        return self._is_name(identifier) if identifier.isalnum() else bool(identifier)

    def code(self, text: str, student: str) -> str:
        """Return code without the student's names; only comments and strings are for people."""
        return "".join(
            self._without_parts(self.text(piece), student)
            if is_text_for_people(kind)
            else self.text(piece)
            for kind, piece in pieces(text)
        )

    def report(self, report: Report) -> Report:
        """Return a report that does not tell whose it is, nor when it was handed in."""
        student = report.submission
        hidden = _replaced(report, lambda value: self._shown(value, student))
        return replace(
            hidden,
            submission=self.names[student],
            person=Person(),
            submitted="",
            due="",
            flags=tuple(self.remark(flag, student) for flag in report.flags),
            notes=tuple(self.remark(note, student) for note in report.notes),
            exercises=tuple(self._exercise(each, student) for each in hidden.exercises),
        )

    def _exercise(self, result: ExerciseResult, student: str) -> ExerciseResult:
        if not result.tests:  # what could not be read is told by the names of files
            return replace(result, advice=self.remark(result.advice, student))
        tests = (replace(each, waived=self._said(each.waived, student)) for each in result.tests)
        return replace(result, tests=tuple(tests))

    def _said(self, text: str, student: str) -> str:
        """Return a teacher's sentence, which may call the student by a part of the name."""
        return self._without_parts(self.text(text), student)

    def _shown(self, value: object, student: str) -> object:
        """Return the value without names, if it may hold some; otherwise the value itself."""
        if isinstance(value, Frame):
            source, around = (self.code(each, student) for each in (value.source, value.around))
            return replace(value, file=HIDDEN, source=source, around=around)
        if isinstance(value, Adjustment):
            return replace(value, why=self._said(value.why, student))
        if isinstance(value, MarkStep):
            return replace(value, says=self._said(value.says, student))
        if isinstance(value, Comment):
            where, text = _replaced(value.where, lambda own: self._shown(own, student)), value.text
            return replace(value, where=where, text=self._said(text, student))
        return self.text(value) if isinstance(value, str) else value

    def submission(self, submission: Submission) -> Submission:
        """Return a submission whose files neither have the student's names nor hold them."""
        student = submission.name
        return replace(
            submission,
            name=self.names[student],
            files={name: self.code(text, student) for name, text in submission.files.items()},
            paths={name: _plain_path(name, path) for name, path in submission.paths.items()},
            notes=(),
        )


def _replaced(value: T, shown: Callable[[object], object]) -> T:
    """Return a value with `shown` of each text and each dataclass in it."""
    new: object = shown(value)
    if new is value and dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        changes = {name: _replaced(own, shown) for name, own in fields.items()}
        new = replace(value, **changes)
    elif isinstance(value, tuple | list):
        new = type(value)(_replaced(each, shown) for each in value)
    elif isinstance(value, dict):
        new = {key: _replaced(each, shown) for key, each in value.items()}
    return new  # type: ignore[return-value]  # of the same type


def _plain_path(exercise: str, path: str) -> str:
    return f"{exercise}{PurePath(path).suffix or '.py'}"


def _spellings(name: str) -> set[str]:
    """Return a name as files and variables have it: `anna_berg`, `bergAnna` and the like."""
    parts = _NAME_PART.findall(name)
    if len(parts) < 2:
        return set()
    orders = (parts, parts[::-1], [parts[0], parts[-1]], [parts[-1], parts[0]])
    return {sign.join(order) for order in orders for sign in ("", "_", "-", ".", " ", ", ")}


def _ordinary_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words that so many submissions have that they tell of nobody."""
    counts: Counter[str] = Counter()
    distinct = {*texts}
    for text in distinct:
        counts.update({word.casefold() for word in _NAME_PART.findall(text)})
    most = max(FEW, COMMON_SHARE * len(distinct))
    return frozenset(word for word, count in counts.items() if count > most)
