"""Plans: the forecast of a job's result, before any budget is spent."""

from __future__ import annotations

import html
import json
from typing import Any

from . import _conclave
from ._job import Job
from ._result import Result
from ._rows import Rows


class Plan:
    """A forecast. `str(plan)` is the text of the command `conclave plan`."""

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        self._text = text
        #: The plan's object, as `conclave plan --json` prints it.
        self.data = data

    @property
    def algorithms(self) -> Rows:
        """The algorithms that can fit the job, with the error and the width of intervals to expect: one row for each.

        Errors are in posterior standard deviations without privacy.
        """
        return Rows(self.data["algorithms"])

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._text)}</pre>"


def plan(job: Job, *, rehearsal: Result | None = None) -> Plan:
    """Forecasts what a job will achieve, from bounds, priors and numbers of records. No data owner is asked.

    Args:
        job: the job; its `[plan]` table or `rehearsal` has the numbers of records.
        rehearsal: the result of `rehearse`, a guess of the posterior.

    Raises:
        InvalidInput: a job without a number of records.
    """
    data, text = _conclave.plan(job.signed, None if rehearsal is None else rehearsal._json)
    return Plan(text.rstrip(), json.loads(data))
