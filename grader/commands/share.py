"""`grader share`: the pages of a class for those who review it, with names or without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from grader.classroom.ledger import Ledger
from grader.classroom.pseudonyms import Pseudonyms
from grader.classroom.publishing import (
    CODE,
    DASHBOARD,
    REPORTS,
    SIMILAR,
    CountedClass,
    code_page,
    explained,
    write_dashboard,
    writing,
)
from grader.classroom.standings import Standing, Standings
from grader.classroom.storage import FILE as LEDGER
from grader.commands.graded import (
    GRADED,
    count_students,
    echo_review,
    graded_class,
    names_hidden,
)
from grader.commands.options import COURSE, FOLDER, short_path
from grader.course.course import Course
from grader.course.visibility import for_student
from grader.errors import RequestError
from grader.report import Person, Report
from grader.reports import render
from grader.submissions.submission import Submission

SHARED = "shared"  # the folder in that of the results


@click.command()
@GRADED
@click.option(
    "--anonymous",
    is_flag=True,
    help="Give everybody a pseudonym: no page holds a name, a login, an address or a file's name.",
)
@click.option(
    "--out",
    type=FOLDER,
    metavar="DIR2",
    help=f"Where to write the pages. Default: DIR/{SHARED}.",
)
@COURSE
def share(folder: Path, anonymous: bool, out: Path | None, course: Course) -> int:
    """Write the pages of a class for those who review it: the dashboard, reports, code side by
    side. Marks, ledger and roster are not among them.

    \b
    grader share --anonymous --in results/       into results/shared/, without names
    grader explain anon-k3m9x2ab --in results/   takes pseudonyms, and then prints no name
    grader adjust anon-k3m9x2ab layer_norm +2 --why "a sign" --in results/

    A pseudonym is the same in each run on a results folder, and another one in each folder. Only
    the ledger tells whose it is. In code, names are sought in comments and strings.
    `grader return` and `grader export` use names.
    """
    out = out or folder / SHARED
    if (out / LEDGER).exists():
        raise RequestError(f"{out} holds the results of a class", "give another folder to --out")
    with graded_class(course, folder) as standings:
        view = _anonymous(standings) if anonymous else _View(standings)
        students = view.write(out)
        how = "under pseudonyms" if anonymous else "with their names"
        click.echo(f"  {count_students(students)}, {how}: {short_path(out / DASHBOARD)}")
        return echo_review(standings.ledger)


@dataclass(frozen=True)
class _View:
    """The pages of a class as somebody may see them: here, everything."""

    standings: Standings

    @property
    def students(self) -> Mapping[str, str]:
        """The students by the names that they have in the pages, in the order of the pages."""
        return {student: student for student in self.standings.ledger.students()}

    def shown(self, standing: Standing) -> Standing:
        """Return a standing as pages show it."""
        return standing

    def shown_missing(self) -> Mapping[str, Person]:
        """Return the students who handed in nothing."""
        return dict(self.standings.ledger.missing())

    def shown_text(self, text: str) -> str:
        """Return a remark on the class as pages show it."""
        return text

    def write(self, out: Path) -> int:
        """Write all pages, in place of those of an earlier run; return the number of students."""
        for kind in (CODE, REPORTS, SIMILAR):
            for page in (out / kind).glob("*.html"):
                with explained(page):
                    page.unlink()
        teams = self.standings.ledger.teams()
        named = {name: teams[one] for name, one in self.students.items() if one in teams}
        counted = CountedClass(self.standings, named)
        students = sum(1 for _ in counted.reports(self._written(out)))
        remarks = tuple(map(self.shown_text, self.standings.remarks))
        summary = counted.summary(self.shown_missing(), remarks)
        write_dashboard(self.standings, out, summary, self._submission)
        return students

    def _written(self, out: Path) -> Iterator[tuple[Report, Mapping[str, str]]]:
        """Write the pages of each student; yield report and files."""
        review, policy = self.standings.ledger.review, self.standings.course.policy
        for name, student in self.students.items():
            standing = self.standings.spared(student)
            if standing is None:
                continue
            shown = self.shown(standing)
            public = self.shown(replace(standing, report=for_student(standing.report, policy)))
            with review.errors_of(student):
                with writing(out / REPORTS / f"{name}.html") as page:
                    page.write(render(public.report, "html"))
                with writing(out / CODE / f"{name}.html") as page:
                    page.write(code_page(self.standings, shown))
            yield shown.report, shown.submission.files

    def _submission(self, name: str) -> Submission:
        standing = self.standings.standing(self.students[name])
        if standing is None:
            raise RequestError(f"{name} has attempts that are not graded yet", "grader regrade")
        return self.shown(standing).submission


@dataclass(frozen=True)
class _AnonymousView(_View):
    """The pages of a class without anything that tells who a student is."""

    pseudonyms: Pseudonyms

    @property
    def students(self) -> Mapping[str, str]:
        """The students by their pseudonyms, whose order is no other order either."""
        handed_in = set(self.standings.ledger.students())
        names = sorted(self.pseudonyms.students.items())
        return {name: student for name, student in names if student in handed_in}

    def shown(self, standing: Standing) -> Standing:
        """Return a standing under a pseudonym."""
        return replace(
            standing,
            report=self.pseudonyms.report(standing.report),
            submission=self.pseudonyms.submission(standing.submission),
            others=(),
        )

    def shown_missing(self) -> Mapping[str, Person]:
        """Return the pseudonyms of the students who handed in nothing."""
        missing = dict(self.standings.ledger.missing())
        return dict.fromkeys(sorted(self.pseudonyms.names[one] for one in missing), Person())

    def shown_text(self, text: str) -> str:
        """Return a remark on the class without names."""
        return self.pseudonyms.text(text)


def _anonymous(standings: Standings) -> _View:
    pseudonyms = Pseudonyms(standings.ledger, _texts(standings.ledger))
    click.get_current_context().with_resource(names_hidden(pseudonyms))
    return _AnonymousView(standings, pseudonyms)


def _texts(ledger: Ledger) -> Iterator[str]:
    """Yield the text of every file; a damaged submission has none."""
    for row in ledger.to_grade():
        with ledger.review.errors_of(row.student):
            yield from ledger.submission(row).files.values()
