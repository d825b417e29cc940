"""Common causes of many wrong answers: the origin of nan, and changes of global settings."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from grader.errors import GraderError
from grader.grading.code_text import line_in_words
from grader.grading.diagnosis.answers import nan_in, values_of
from grader.grading.diagnosis.asked import Answers
from grader.grading.diagnosis.catalogue import AnyCatalogue
from grader.grading.diagnosis.facts import MAX_FACTS
from grader.grading.diagnosis.search import LOOK_FIRST, UNKNOWN
from grader.grading.global_changes import global_change
from grader.report import Diagnosis
from grader.sandbox.host.proxies import Student, code_of

BEGINS = re.compile(r"(nan|infinity|root)\.([a-z_]+)\.\w*\.([^\n]+):(\d{1,6})")
NAN = {  # the reason for nan, by the word of the watch
    "all_hidden": "a row of scores is -inf everywhere, so its softmax divides 0 by 0",
    "infinity_by_infinity": "infinity divided by infinity is nan",
    "infinity_less_infinity": "infinity minus infinity is nan",
    "mean_of_nothing": "the mean of no numbers is nan",
    "negative_logarithm": "a negative number has no logarithm",
    "negative_root": "a negative number has no root",
    "other": "its arguments have none",
    "product_of_infinity": "the product multiplies 0 by infinity, or adds infinity and -infinity",
    "variance_of_one": "the corrected variance of a single number divides 0 by 0",
    "written": "it is written there",
    "zero_by_zero": "0 divided by 0 is nan",
    "zero_times_infinity": "0 times infinity is nan",
}
INFINITY = {  # the reason for infinity, by the same words
    "by_zero": "a number divided by 0 is infinite",
    "exponential": "the exponential of a large number is more than a float can hold",
    "logarithm_of_zero": "the logarithm of 0 is -infinity",
    "other": "the result is more than a float can hold",
}
FROM_INFINITY = (
    *("infinity_by_infinity", "infinity_less_infinity", "zero_times_infinity"),
    "product_of_infinity",
)


@dataclass(frozen=True)
class Beginning:
    """The place where nan or infinity begins, and the reason: a word of the watch."""

    why: str
    file: str
    line: int

    def place(self, texts: Mapping[str, str]) -> str:
        """Return the line of code in a student's files, by exercise."""
        return line_in_words(texts.get(PurePath(self.file).stem, ""), self.line)


def with_causes(
    diagnosis: Diagnosis | None,
    catalogue: AnyCatalogue,
    answers: Answers,
    module: Callable[[], Student],
    texts: Mapping[str, str],
) -> Diagnosis | None:
    """Return a diagnosis whose facts begin with a common cause, if there is one.

    Causes are the file's changes of global settings, and the origin of nan. `module` returns the
    student's code anew, and `texts` are the files by exercise.
    """
    if diagnosis is None or (diagnosis.faults and not diagnosis.facts):
        return diagnosis
    name = catalogue.exercise.name
    causes = [global_change(texts[name])]
    if case := catalogue.with_nan(answers, diagnosis.explains_cases):
        student = module()
        ask = functools.partial(case.ask, student, catalogue.seed, name)
        causes.append(nan_in_words(ask, student, texts))
    causes = [*filter(None, causes)]
    says = LOOK_FIRST if causes and diagnosis.says == UNKNOWN else diagnosis.says
    return replace(diagnosis, says=says, facts=(*causes, *diagnosis.facts)[:MAX_FACTS])


def nan_in_words(ask: Callable[[], Any], student: Student, texts: Mapping[str, str]) -> str:
    """Return where nan begins in the calls of `ask`, and why; nothing if no nan is seen.

    `texts` are the student's files by exercise. Nan may be in the answer, or only in gradients.
    """
    try:
        with code_of(student).watched("nan") as counts:
            answer = values_of(ask())
    except GraderError:
        raise
    except Exception:  # an error shows itself where it is raised
        return ""
    begins = dict(_parsed(counts.begins))
    return _in_words(begins, texts, in_gradient_alone=not nan_in(answer))


def _parsed(told: Iterable[str]) -> Iterable[tuple[str, Beginning]]:
    """Yield the notes of a worker; a student's code may have changed them to anything."""
    for text in itertools.islice(told, 3):
        if match := BEGINS.fullmatch(text):
            what, why, file, line = match.groups()
            yield what, Beginning(why, file, int(line))


def _in_words(
    begins: Mapping[str, Beginning], texts: Mapping[str, str], *, in_gradient_alone: bool
) -> str:
    nan, infinity, root = (begins.get(what) for what in ("nan", "infinity", "root"))
    if nan is not None:
        why = NAN.get(nan.why, NAN["other"])
        where = "on its way to the output, and is replaced later" if in_gradient_alone else "first"
        says = f"nan appears {where} in {nan.place(texts)}: {why}."
        if in_gradient_alone:
            return f"{says} What is replaced still counts in the gradient, as 0 times nan."
        if nan.why in FROM_INFINITY and infinity is not None and infinity.why in INFINITY:
            here = infinity.line == nan.line
            origin = "The infinity" if here else f"Infinity comes from {infinity.place(texts)}"
            says += f" {origin}: {INFINITY[infinity.why]}."
        return says
    if not in_gradient_alone:
        return ""
    if root is not None:
        return f"At 0 a root has an infinite slope, and 0 times that is nan: {root.place(texts)}."
    if infinity is not None and infinity.why in INFINITY:
        why = INFINITY[infinity.why]
        return (
            f"On its way to the output, {infinity.place(texts)} gives infinity: {why}. If it is "
            "replaced later, it still counts in the gradient, as 0 times infinity."
        )
    return ""
