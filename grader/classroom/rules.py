"""The rules under which marks are published: all that decides a mark except files and seed."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping

from grader.course.course import Course
from grader.course.policy import Policy

RULES = "rules"  # the setting with the parts of the rules under which marks were published
SOMETHING = "the course, its rules or the grader"
MAX_NAMED = 4  # parts in a sentence
NO_RULE = {"show", "missing", "zone", "start"}  # of a policy; they decide no submission's mark
POLICY = {
    "due": "the due date",
    "grace": "the grace period",
    "per_day": "what a late day costs",
    "steps": "what lateness costs",
    "floor": "what late work keeps at least",
    "weights": "the weights",
    "extra_credit": "what is extra credit",
    "budget": "the late days that are free",
    "carry_forward": "whether a mistake is charged once",
}


def rules_of(course: Course, attempt: str, versions: str) -> str:
    """Return a hash over everything that decides the mark of a submission, except the seed."""
    counting = dataclasses.replace(course.policy, show={})  # what students may see decides no mark
    budget = [course.policy.budget] if course.policy.budget else []  # as for classes before it
    rules = repr((course.hash, counting, attempt, versions, *budget))
    return hashlib.sha256(rules.encode()).hexdigest()[:16]


def parts_of(course: Course, attempt: str, versions: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of the rules: teachers' name for each, and a text that identifies it."""
    fields = [each.name for each in dataclasses.fields(Policy) if each.name not in NO_RULE]
    return {
        **{POLICY[name]: repr(getattr(course.policy, name)) for name in fields},
        "which attempt counts": attempt,
        **{f"the grading of {name}": digest for name, digest in course.hashes.items()},
        **{f"the version of {name}": version for name, version in versions.items()},
    }


def changed_parts(before: Mapping[str, str] | None, now: Mapping[str, str]) -> str:
    """Return in words which parts differ; `SOMETHING` if the earlier ones are unknown."""
    names = dict.fromkeys((*now, *(before or ())))
    changed = [name for name in names if before and before.get(name) != now.get(name)]
    more = [f"{len(changed) - MAX_NAMED} more"] if len(changed) > MAX_NAMED else []
    *first, last = [*changed[:MAX_NAMED], *more] or [SOMETHING]
    return f"{', '.join(first)} and {last}" if first else last
