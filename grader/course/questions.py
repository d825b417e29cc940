"""The questions at the end of an exercise's notebook; they earn no points.

A students' copy holds a hash in place of each answer. That hides it from readers, not from somebody
who tries all numbers.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import string
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

SEALED = "sha256:"  # before the hash of an answer
DENOMINATOR = 10**6  # the largest of an answer, so that 1 / 3 as a float is a third
NUMBER = re.compile(r"[-+]?(\d{1,20}/\d{1,20}|(\d{1,20}(\.\d{0,20})?|\.\d{1,20})(e[-+]?\d{1,3})?)")
Text = Annotated[str, Meta(min_length=1)]


class LessonQuestion(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question: `because` is shown after a right answer, `nudge` after a wrong one.

    With `choices`, which are lettered from a, the answer is a letter.
    """

    asks: Text
    answer: int | float | Text
    because: Text
    nudge: Text
    choices: tuple[str, ...] = ()

    @property
    def lettered(self) -> Iterator[tuple[str, str]]:
        """Yield each choice with its letter."""
        yield from zip(string.ascii_lowercase, self.choices, strict=False)

    @property
    def problem(self) -> str:
        """What is wrong with the answer of an author, or nothing."""
        letters = [letter for letter, _ in self.lettered]
        if not normal(self.answer):
            return "the answer is empty"
        if letters and normal(self.answer) not in letters:
            return f"the answer is the letter of a choice: {', '.join(letters)}"
        return ""

    def sealed(self) -> LessonQuestion:
        """Return the question with a hash in place of the answer."""
        if isinstance(self.answer, str) and self.answer.startswith(SEALED):
            return self
        return replace(self, answer=self._seal(self.answer))

    def accepts(self, answer: object) -> bool:
        """Return whether an answer is right, in whatever form it is given."""
        return self._seal(answer) == self.sealed().answer

    def _seal(self, answer: object) -> str:
        salted = f"{self.asks}\0{normal(answer)}".encode()
        return SEALED + hashlib.sha256(salted).hexdigest()[:32]


def normal(answer: object) -> str:
    """Return an answer as text: a number as a fraction, words in lower case.

    2, 2.0, "2" and torch.tensor(2.0) have the same text, and so have 1 / 3 and "1/3".
    """
    if item := getattr(answer, "item", None):
        with contextlib.suppress(TypeError, ValueError, RuntimeError):  # a tensor of many numbers
            answer = item()
    try:
        text = " ".join(str(answer).casefold().split()).rstrip(" .)")
    except ValueError:  # an int of thousands of digits has no text
        return ""
    if NUMBER.fullmatch(text):  # any other number, such as 1e999999999, would be worked out
        with contextlib.suppress(ZeroDivisionError):
            return str(Fraction(text).limit_denominator(DENOMINATOR))
    return text
