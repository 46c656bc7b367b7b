"""Rehearsals, and the screening of a table."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _conclave
from ._job import Job
from ._progress import Progress, _Shown
from ._result import Result
from .errors import Interrupted, InvalidInput

#: A table: a DataFrame of pandas or polars, a pyarrow.Table, or any object with `__arrow_c_stream__`.
Table = Any


class RecordsWarning(UserWarning):
    """A concern about records, with its remedy."""


@dataclass(frozen=True)
class Concern:
    """A possible mistake in records."""

    #: True if the job cannot use the records as they are.
    grave: bool
    #: What was found.
    found: str
    #: What to do.
    remedy: str

    def __str__(self) -> str:
        return f"{self.found}: {self.remedy}"


def _in_order(job: Job, tables: Sequence[Table] | Mapping[str, Table]) -> list[Table]:
    if not isinstance(tables, Mapping):
        if hasattr(tables, "__arrow_c_stream__"):
            raise InvalidInput("one table was given in place of a list", remedy="give one table for each party, in the job's order or by name")
        return list(tables)
    missing = [party for party in job.parties if party not in tables]
    unknown = [party for party in tables if party not in job.parties]
    if missing or unknown:
        words = [f"no table for {', '.join(missing)}"] if missing else []
        words += [f"{', '.join(map(str, unknown))} is no party of the job"] if unknown else []
        raise InvalidInput("; ".join(words), remedy=f"the job's parties are {', '.join(job.parties)}")
    return [tables[party] for party in job.parties]


def rehearse(
    job: Job,
    tables: Sequence[Table] | Mapping[str, Table],
    *,
    seed: int | None = None,
    drop_bad_rows: bool = False,
    anyway: bool = False,
    progress: Progress = True,
) -> Result:
    """Runs a job in this process on your own or on made-up records: no network, and no owner's budget.

    Sampler, models, noise and accounting are those of a real run. Nothing here is private.

    Args:
        job: the job.
        tables: one table for each party, in the job's order or by name. Columns of float64 without nulls are read where they are.
        seed: the seed of the noise, for a repeatable run; by default the system's random generator.
        drop_bad_rows: let rows with a missing or non-finite value count and contribute zero; the job must allow for them.
        anyway: run the job although no usable posterior can be expected at its budget.
        progress: show a line, or a callable that is given each state (a dict), at most ten times a second.

    Raises:
        Interrupted: Ctrl-C, or a notebook's stop button; `.result` has the draws made so far.
        InvalidInput: a table that does not fit; the message names the party, the row (counted from 0) and the column.
        BudgetSpent: the budget affords no usable posterior.

    Warns:
        RecordsWarning: a possible mistake in the records.
    """
    ordered, kept = _in_order(job, tables), list[_conclave.Run]()
    try:
        with _Shown(progress) as observe:
            interrupted = _conclave.rehearse(job.toml, ordered, seed, drop_bad_rows, anyway, observe, _warn, kept)
        if interrupted is not None:
            raise interrupted
        return Result(kept[0])
    except KeyboardInterrupt:
        # Python handles a signal between any two of these steps, also before the first draw and after the last.
        raise Interrupted(Result(kept[0]) if kept else None) from None


def _warn(text: str) -> None:
    warnings.warn(text, RecordsWarning, stacklevel=3)


def check(table: Table, job: Job) -> list[Concern]:
    """Looks in a table for mistakes that no answer of a job shows: codes for "unknown" among numbers, levels that are spelt
    differently, bounds that do not fit, predictors that are constant.

    Raises:
        InvalidInput: a missing column, or an unusable row in a job that does not allow for them.
    """
    return [Concern(**concern) for concern in json.loads(_conclave.check(job.signed, table))]
