"""The signature of wrong answers to cases."""

from __future__ import annotations

from grader.course.stubs import make_stub
from grader.grading import signatures
from grader.grading.diagnosis.answers import Answer, Raised
from grader.grading.diagnosis.asked import Answers
from grader.grading.diagnosis.catalogue import AnyCatalogue
from grader.grading.diagnosis.computed import ComputedCatalogue
from grader.grading.diagnosis.respondent import Respondent
from grader.grading.seeds import PUBLIC_SEED, mark_of_seed
from grader.grading.signatures import is_same_mistake
from grader.report import UNWRITTEN


def signature_of(catalogue: AnyCatalogue, answers: Answers, *, whole: bool) -> str:
    """Return the signature of a program's wrong answers; empty if there are none.

    An answer that just exceeds the tolerance is left out if others are clearly wrong, because
    another spelling may be within it. `whole` says that all cases were asked.
    """
    main: list[signatures.SignedAnswer] = []
    edges: list[signatures.SignedAnswer] = []
    for case in catalogue.wrong(answers):
        entries = edges if case.about.is_edge else main
        entries.append(_entry(case.name, answers[case.name]))
    seed = "" if catalogue.seed == PUBLIC_SEED else mark_of_seed(catalogue.seed)
    return signatures.written(main, edges, whole=whole, seed=seed)


def known_with(signature: str, catalogue: ComputedCatalogue) -> str:
    """Return the known mistake, or "the stub", with this signature; empty if there is none."""
    stub = catalogue.respondent(make_stub(catalogue.exercise))
    programs = (("the stub", stub), *((c.faults[0].name, c.program) for c in catalogue.singles()))
    for name, program in programs:
        if is_same_mistake(_signature(catalogue, program), signature):
            return name
    return ""


def _signature(catalogue: ComputedCatalogue, program: Respondent) -> str:
    answers = {case.name: program.answer(case) for case in catalogue.cases}
    written = {n: a for n, a in answers.items() if getattr(a, "kind", "") not in UNWRITTEN}
    return signature_of(catalogue, written, whole=True)


def _entry(name: str, answer: Answer) -> signatures.SignedAnswer:
    if isinstance(answer, Raised):
        return signatures.entry(name, f"{answer.kind}\0{answer.subject}")
    return signatures.entry(name, repr(answer.form), *answer.sketch)
