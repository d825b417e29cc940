"""Feedback on its way back to students: its texts, and the files for platforms.

This package turns the parts that a student may see into names, texts and bytes. It knows neither
the ledger nor where files are written.
"""

from grader.classroom.returning.mail import (
    Mail,
    is_address,
    mbox_entry,
    parse_sender,
    write_table,
)
from grader.classroom.returning.names import canvas_name, moodle_name
from grader.classroom.returning.texts import comment, is_own_comment, letter, one_line

__all__ = [
    "Mail",
    "canvas_name",
    "comment",
    "is_address",
    "is_own_comment",
    "letter",
    "mbox_entry",
    "moodle_name",
    "one_line",
    "parse_sender",
    "write_table",
]
