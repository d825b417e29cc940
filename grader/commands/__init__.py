"""The command line: a module for each command, with its click options above and its use case below.

A command's module is imported when the command is used, so that `grader --help` starts at once and
imports can stand at the top of files. No other room imports this one.
"""

from __future__ import annotations

import sys
from importlib import import_module
from keyword import iskeyword

import click

from grader import __version__
from grader.errors import RequestError, did_you_mean

# For each group of users: a command, its module, and its line in `grader --help`.
GROUPS = {
    "Students": {
        "init": ("init", "Write the exercises into a folder, to start with."),
        "check": ("check", "Grade my work and say what to fix first."),
        "hint": ("practice", "Show the next hint, from a nudge to nearly the answer."),
        "status": ("practice", "Show how far each exercise is."),
        "tour": ("tour", "Lead one sentence through your exercises, as a page of pictures."),
        "reset": ("practice", "Start an exercise over; your file is kept as a copy."),
        "trust": ("trust", "Look at a course from elsewhere, and let its code run here."),
    },
    "Teachers": {
        "batch": ("batch", "Grade a class: a folder or a zip from any platform."),
        "regrade": ("regrade", "Grade a class again after a change of the course."),
        "adjust": ("adjust", "Add points to a student's exercise or mark, or take some away."),
        "waive": ("waive", "Take a broken or unfair check out of marks that are graded already."),
        "comment": ("comment", "Comment on lines of a student's code."),
        "name": ("name", "Name a mistake that the class made and the course does not know."),
        "explain": ("history", "Show how a mark came about, line by line."),
        "history": ("history", "Show what changed the marks, when and why."),
        "overview": ("overview", "Show a term on one page: marks, late days, who falls behind."),
        "share": ("share", "Write the pages of a class for assistants, also without names."),
        "export": ("export", "Write the marks for Canvas, Moodle and other tools."),
        "autograder": ("autograder", "Write an autograder for Gradescope or another platform."),
        "return": ("returning", "Give students their feedback: Moodle, Canvas or mail."),
        "erase": ("erase", "Erase everything that is stored about one student."),
        "doctor": ("doctor", "Say whether it is safe to run student code here."),
    },
    "Authors": {
        "new": ("new", "Write an exercise to start from."),
        "import": ("importing", "Make exercises from a notebook for nbgrader or otter."),
        "build": ("build", "Write exercises/ from reference/."),
        "bundle": ("bundle", "Encrypt the course into one file, to grade with elsewhere."),
        "handout": ("handout", "Write the repository that students get, and bring it up to date."),
        "validate": ("validate", "Prove that the course's content is right."),
    },
}
NEED_UNIX = {*GROUPS["Teachers"], "validate"}  # they fork processes that share their memory
MODULES = {name: module for group in GROUPS.values() for name, (module, _) in group.items()}
STANDBY = "standby"  # hidden, because only a notebook starts it


# The names of commands in other tools.
OTHER_WORDS = {
    **dict.fromkeys(("test", "tests", "run", "grade", "submit", "verify"), "check"),
    **dict.fromkeys(("start", "install", "setup", "download"), "init"),
    **dict.fromkeys(("tip", "clue", "solution"), "hint"),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and return the command; None if there is no such command."""
        if cmd_name not in (*MODULES, STANDBY):
            return None
        if sys.platform == "win32" and cmd_name in NEED_UNIX:
            problem = f"`grader {cmd_name}` does not run on Windows itself"
            raise RequestError(problem, "wsl --install   installs Linux, where it runs")
        module = import_module(f"{__name__}.{MODULES.get(cmd_name, cmd_name)}")
        function = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        return getattr(module, function)  # type: ignore[no-any-return]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command; raise `RequestError` with the closest name."""
        name = args[0]
        if name not in (*MODULES, STANDBY) and not name.startswith("-"):
            other = OTHER_WORDS.get(name, "")
            meant = f"; did you mean `{other}`?" if other else did_you_mean(name, MODULES)
            raise RequestError(f"there is no command `{name}`{meant}", "grader --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, grouped by who uses them."""
        width = max(map(len, MODULES))
        for users, group in GROUPS.items():
            with formatter.section(users):
                formatter.write_dl(
                    [(f"{name:<{width}}", line) for name, (_, line) in group.items()]
                )


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit codes: 0 all passed, 1 some checks failed, 2 the request is wrong, "
    "3 the grader itself failed.",
)
@click.version_option(__version__, message="attention-grader %(version)s")
@click.pass_context
def commands(context: click.Context) -> int:
    """A course on attention and Transformers that grades itself.

    Alone, in the folder of a course, it shows where you stand and what is next.
    """
    if context.invoked_subcommand is None:
        import_module(f"{__name__}.practice").show_overview(context)
    return 0
