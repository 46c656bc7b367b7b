"""A coordinator's jobs."""

from __future__ import annotations

import html
import json
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from . import _conclave
from ._job import Job
from ._progress import Progress, _Shown
from ._result import Result
from ._rows import Rows
from .errors import InvalidInput


def _place(coordinator: str | None, identity: str | Path | None) -> tuple[str, Path]:
    """Returns the coordinator and the identity folder, by default those of the environment."""
    coordinator = coordinator or os.environ.get("CONCLAVE_COORDINATOR")
    identity = identity or os.environ.get("CONCLAVE_IDENTITY")
    if not coordinator or not identity:
        missing = " and ".join(name for name, value in (("coordinator", coordinator), ("identity", identity)) if not value)
        raise InvalidInput(f"no {missing} was given", remedy="pass it, or set CONCLAVE_COORDINATOR and CONCLAVE_IDENTITY")
    return coordinator, Path(identity)


def _changes(
    priors: Mapping[str, str] | None, drop: Sequence[str], without: Sequence[str], draws: int | None, chains: int | None, seed: int | None
) -> dict[str, Any]:
    pairs = [[name, density] for name, density in (priors or {}).items()]
    return {"priors": pairs, "drop": list(drop), "without": list(without), "draws": draws, "chains": chains, "seed": seed}


def _warn_all(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, UserWarning, stacklevel=4)


#: Operations that read a job's log, of which a coordinator sends an analyst one at a time.
_OF_LOGS = frozenset(("result", "report", "job", "extend", "refit"))


class Report(str):
    """A report: the text of one HTML page, which a notebook shows in a frame."""

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self)}" style="width: 100%; height: 40em; border: 1px solid #ccc" title="report"></iframe>'


class Client:
    """A connection to a coordinator, as the analyst of an identity folder.

    It reconnects by itself, and may be used from several threads. A process that was forked needs a Client of its own.

    Args:
        coordinator: the coordinator's address, https://HOST or https://HOST:PORT; by default CONCLAVE_COORDINATOR.
        identity: the folder with certificate.pem, key.pem and ca.pem; by default CONCLAVE_IDENTITY.

    Raises:
        InvalidInput: an identity that cannot be read.
        Unauthenticated: an identity of another role or another consortium.
        Unreachable: the coordinator does not answer.
    """

    def __init__(self, coordinator: str | None = None, identity: str | Path | None = None) -> None:
        self.coordinator, folder = _place(coordinator, identity)
        self._native = _conclave.Client(self.coordinator, folder)
        self._logs = threading.Lock()
        if self._native.warning:
            _warn_all([self._native.warning])

    def _call(self, operation: str, progress: Progress = False, **arguments: Any) -> Any:
        with self._logs if operation in _OF_LOGS else nullcontext(), _Shown(progress) as observe:
            answer = self._native.call(operation, json.dumps(arguments), observe)
        return json.loads(answer) if isinstance(answer, str) else answer

    def submit(self, job: Job, *, anyway: bool = False) -> Run:
        """Completes, signs and submits a job. Every party checks the signature.

        Args:
            job: the job.
            anyway: query the parties although no usable posterior can be expected at the job's budget.
        """
        answer = self._call("submit", job=job.toml, anyway=anyway)
        _warn_all(answer["warnings"])
        return Run(self, answer["job"])

    def run(self, id: str) -> Run:
        """Returns the run of this id, or of the one id that begins so.

        Raises:
            NotFound: there is no such job.
        """
        return Run(self, self._call("whole_id", id=id))

    def jobs(self) -> Runs:
        """Returns your runs, newest first."""
        return Runs(Run(self, state["job"], state) for state in self._call("jobs")["jobs"])

    def budget(self, parties: Sequence[str] = ()) -> Rows:
        """Returns your remaining budget at these parties, or at all that the coordinator knows: one row for each."""
        return Rows(self._call("budget", parties=list(parties))["parties"])

    def __repr__(self) -> str:
        return f"<Client of {self.coordinator}>"


class Run:
    """A job at the coordinator. It runs on whether or not this process does."""

    def __init__(self, client: Client, id: str, state: dict[str, Any] | None = None) -> None:
        self._client = client
        #: The job's id.
        self.id = id
        self._state = state

    def status(self) -> dict[str, Any]:
        """Returns the job's state: state, phase, iterations, draws, parties and what they have spent, …."""
        self._state = self._client._call("status", id=self.id)
        return self._state

    def watch(self, *, progress: Progress = True) -> Run:
        """Follows the job until it has ended, across broken connections. Ctrl-C ends the watching, not the job.

        Args:
            progress: show a line, or a callable that is given each state (a dict). Its exception ends the watching.

        Raises:
            ConclaveError: the class of the fault with which the job failed.
        """
        self._state = self._client._call("watch", progress, id=self.id)
        return self

    def cancel(self) -> dict[str, Any]:
        """Ends the job, and returns its state. The draws made so far are kept."""
        self._state = self._client._call("cancel", id=self.id)
        return self._state

    def result(self) -> Result:
        """Fetches the result of a job that has ended.

        Raises:
            NotFound: the job has no result yet.
        """
        return Result(self._client._call("result", id=self.id))

    def report(self, path: str | Path | None = None, *, per: Sequence[str] = ()) -> Report:
        """Returns the report as one HTML page, which a notebook shows, and writes it to a new file if a path is given.

        Args:
            path: the file; it must not exist.
            per: units of numeric predictors, such as "age=10 years".
        """
        page = Report(self._client._call("report", id=self.id, per=list(per))) if path is None else self._written(Path(path), per)
        return page

    def _written(self, path: Path, per: Sequence[str]) -> Report:
        if path.exists():
            raise InvalidInput(f"{path} already exists", remedy="choose another path")
        page = Report(self._client._call("report", id=self.id, per=list(per)))
        with open(path, "x", encoding="utf-8") as file:
            file.write(page)
        return page

    def extend(self, *, draws: int | None = None, epsilon: float | None = None) -> Run:
        """Continues the chains of an ended job as a new one, which is signed, consented to and charged as any other.

        Args:
            draws: draws per chain; by default the number that the job requested.
            epsilon: the budget of the extension at each party; by default that of the job.
        """
        answer = self._client._call("extend", id=self.id, draws=draws, epsilon=epsilon)
        _warn_all(answer["warnings"])
        return Run(self._client, answer["job"])

    def refit(
        self,
        *,
        priors: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        without: Sequence[str] = (),
        draws: int | None = None,
        chains: int | None = None,
        seed: int | None = None,
    ) -> Result:
        """Infers another posterior from the job's releases. No party is asked, and nothing is charged.

        Args:
            priors: densities by parameter, or for all others as "default".
            drop: predictors to leave out.
            without: parties to leave out of a job with parameters by party.
            draws, chains, seed: of the new draws; by default the job's.
        """
        return Result(self._client._call("refit", id=self.id, changes=_changes(priors, drop, without, draws, chains, seed)))

    @property
    def job(self) -> Job:
        """The job, byte for byte as it was signed."""
        return Job(self._client._call("job", id=self.id))

    def __repr__(self) -> str:
        state = "" if self._state is None else f" {self._state.get('name', '')!r}: {self._state['state']}"
        return f"<Run {self.id}{state}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>"


class Runs(list[Run]):
    """Runs, newest first, shown as a table."""

    def _rows(self) -> Rows:
        keys = ("job", "name", "state", "verdict", "draws", "draws_asked", "submitted")
        return Rows({key: (run._state or {}).get(key) for key in keys} for run in self)

    def __repr__(self) -> str:
        return repr(self._rows())

    def _repr_html_(self) -> str:
        return self._rows()._repr_html_()
