"""Errors: one class for each stable code of Conclave.

Every error has the words of the command line, `code`, the name of the `party` at fault if there is one, and the `remedy`,
the next step if it is known apart from the message.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._result import Result

__all__ = [
    "BudgetSpent",
    "ConclaveError",
    "Conflict",
    "ConsentRevoked",
    "InternalError",
    "Interrupted",
    "InvalidInput",
    "NotFound",
    "PolicyRefused",
    "Unauthenticated",
    "Unreachable",
]


class ConclaveError(Exception):
    """An error with a stable code. Programs act on the class or the code; the message is for people."""

    #: The stable code, as in JSON and logs.
    code: str = ""

    def __init__(self, message: str, *, party: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message if remedy is None else f"{message}: {remedy}")
        #: The message without the remedy.
        self.message = message
        #: The name of the party at fault, or None.
        self.party = party
        #: The next step, or None if the message states it.
        self.remedy = remedy


class InvalidInput(ConclaveError):
    """The input is invalid: a job, a table, an argument."""

    code = "invalid_input"


class NotFound(ConclaveError):
    """The job or its result does not exist."""

    code = "not_found"


class PolicyRefused(ConclaveError):
    """A data owner's policy forbids the request."""

    code = "policy"


class ConsentRevoked(ConclaveError):
    """A data owner has taken back what the request needs."""

    code = "revoked"


class BudgetSpent(ConclaveError):
    """A privacy budget does not cover the request."""

    code = "budget"


class Unauthenticated(ConclaveError):
    """The certificate does not authorise the request."""

    code = "unauthenticated"


class Unreachable(ConclaveError):
    """A party or the coordinator cannot be reached."""

    code = "unreachable"


class Conflict(ConclaveError):
    """The id was used before for different content."""

    code = "conflict"


class InternalError(ConclaveError):
    """Any other error: a fault of the software or of its machine."""

    code = "internal"


class Interrupted(KeyboardInterrupt):
    """A rehearsal that Ctrl-C or a notebook's stop button ended early. `result` has the draws made so far, or is None."""

    def __init__(self, result: Result | None) -> None:
        super().__init__("the rehearsal was stopped" + ("; the draws made so far are in .result" if result is not None else " before its first draw"))
        #: The result of the draws made so far; None if there was none.
        self.result = result


_CLASSES: dict[str, type[ConclaveError]] = {
    kind.code: kind
    for kind in (InvalidInput, NotFound, PolicyRefused, ConsentRevoked, BudgetSpent, Unauthenticated, Unreachable, Conflict, InternalError)
}

#: Commands in remedies, and the calls that take their place.
_CALLS: list[tuple[str, str]] = [
    (r"pass --rehearsal FILE from `conclave rehearse`", "pass rehearsal=conclave.rehearse(job, tables)"),
    (r"`conclave watch ([^` ]+)[^`]*`", r'client.run("\1").watch()'),
    (r"`conclave cancel ([^` ]+)[^`]*`", r'client.run("\1").cancel()'),
    (r"`conclave jobs[^`]*`", "client.jobs()"),
    (r"`conclave plan[^`]*`", "conclave.plan(job)"),
    (r"`conclave rehearse --json`", "conclave.rehearse"),
    (r"`conclave rehearse[^`]*`", "conclave.rehearse(job, tables)"),
    (r"`conclave submit[^`]*`", "client.submit(job)"),
    (r"`conclave budget[^`]*`", "client.budget()"),
    (r", see `conclave ca --help`", ""),
    (r"\bdrop_bad_rows\b", "drop_bad_rows=True"),
    (r"--anyway\b", "anyway=True"),
]


def _in_python(text: str) -> str:
    """Returns a text of the command line with calls in place of its commands and options."""
    for pattern, call in _CALLS:
        text = re.sub(pattern, call, text)
    return re.sub(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)", lambda option: option[1].replace("-", "_"), text)


def _of_fault(code: str, party: str | None, message: str, remedy: str | None) -> ConclaveError:
    """Returns the error of a fault. The native half calls it."""
    kind = _CLASSES.get(code, InternalError)
    return kind(_in_python(message), party=party, remedy=None if remedy is None else _in_python(remedy))
