"""The output in a job of GitHub Actions: the report as text, then a remark at each place to fix.

The runner obeys lines that begin with `::`. So that a student's text gives no order, the report is
printed while orders are switched off, and a remark has no character that could begin an order.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from grader.report import Report
from grader.reports import text
from grader.reports.figures import amount
from grader.reports.remarks import Checkout, Remark, remarks

OLDER_ORDER = "##["  # which may stand anywhere in a line
MAX_REMARKS = 10  # of one step: the runner shows no more
NOT_STARTED = "No exercise was begun yet, so there is nothing to fix."


def to_commands(report: Report, checkout: Checkout) -> str:
    """Return the text of the report and the orders that show what to fix beside the code."""
    token = f"grader-{secrets.token_hex(16)}"
    shown = text.render(report, None).rstrip("\n")
    orders = [*_orders(report, checkout)][:MAX_REMARKS]
    return _inert("\n".join([f"::stop-commands::{token}", shown, f"::{token}::", *orders])) + "\n"


def to_outputs(report: Report) -> str:
    """Return the outputs of a step: numbers and words of our own, nothing of a student's."""
    passed = str(report.passed).lower()
    points, most = amount(report.counted), amount(report.max_counted)
    return f"points={points}\nmax_points={most}\npassed={passed}\nstate={report.state}\n"


def to_error(message: str, remedy: str) -> str:
    """Return the order that shows why nothing was graded."""
    says = "\n".join(filter(None, (message, remedy and f"try: {remedy}")))
    return _inert(f"::error title=Nothing was graded::{_data(says)}") + "\n"


def _orders(report: Report, checkout: Checkout) -> Iterator[str]:
    if report.state == "not started":
        yield f"::notice title=Not started::{NOT_STARTED}"
    yield from map(_order, remarks(report, checkout))


def _order(remark: Remark) -> str:
    properties = {"title": remark.title}
    if remark.place is not None:
        line = {"line": str(remark.place.line)} if remark.place.line else {}
        properties = {"file": remark.place.file, **line, **properties}
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    says = "\n".join(filter(None, (remark.message, remark.named)))
    return f"::error {given}::{_data(says)}"


def _inert(orders: str) -> str:
    return orders.replace(OLDER_ORDER, "## [")


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
