"""The asynchronous twins of Client and Run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _conclave
from ._client import _OF_LOGS, Report, _changes, _place, _warn_all
from ._job import Job
from ._progress import Progress, _Shown
from ._result import Result
from ._rows import Rows


class AsyncClient:
    """A connection to a coordinator whose calls are awaited; the names are those of `Client`. It connects with its first call.

    Args:
        coordinator: the coordinator's address; by default CONCLAVE_COORDINATOR.
        identity: the identity folder; by default CONCLAVE_IDENTITY.
    """

    def __init__(self, coordinator: str | None = None, identity: str | Path | None = None) -> None:
        self.coordinator, self._identity = _place(coordinator, identity)
        self._connected: asyncio.Task[_conclave.Client] | None = None
        self._logs = asyncio.Lock()

    async def _client(self) -> _conclave.Client:
        if self._connected is None or (self._connected.done() and self._connected.exception() is not None):
            connecting = asyncio.to_thread(_conclave.Client, self.coordinator, self._identity)
            self._connected = asyncio.ensure_future(connecting)
        return await asyncio.shield(self._connected)

    async def _call(self, operation: str, progress: Progress = False, **arguments: Any) -> Any:
        if operation not in _OF_LOGS:
            return await self._answer(operation, progress, arguments)
        async with self._logs:
            return await self._answer(operation, progress, arguments)

    async def _answer(self, operation: str, progress: Progress, arguments: dict[str, Any]) -> Any:
        client, loop = await self._client(), asyncio.get_running_loop()
        answered: asyncio.Future[Any] = loop.create_future()

        def settle(answer: Any, error: BaseException | None) -> None:
            if not answered.done():
                answered.set_result(answer) if error is None else answered.set_exception(error)

        def done(answer: Any, error: BaseException | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, answer, error)

        with _Shown(progress) as observe:

            def show(state: str) -> None:
                try:
                    assert observe is not None
                    observe(state)
                except BaseException as error:
                    settle(None, error)

            def seen(state: str) -> None:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(show, state)

            task = client.start(operation, json.dumps(arguments), done, None if observe is None else seen)
            try:
                answer = await answered
            finally:
                task.abort()
        return json.loads(answer) if isinstance(answer, str) else answer

    async def submit(self, job: Job, *, anyway: bool = False) -> AsyncRun:
        """Completes, signs and submits a job, as `Client.submit`."""
        answer = await self._call("submit", job=job.toml, anyway=anyway)
        _warn_all(answer["warnings"])
        return AsyncRun(self, answer["job"])

    async def run(self, id: str) -> AsyncRun:
        """Returns the run of this id, or of the one id that begins so."""
        return AsyncRun(self, await self._call("whole_id", id=id))

    async def jobs(self) -> list[AsyncRun]:
        """Returns your runs, newest first."""
        return [AsyncRun(self, state["job"]) for state in (await self._call("jobs"))["jobs"]]

    async def budget(self, parties: Sequence[str] = ()) -> Rows:
        """Returns your remaining budget, as `Client.budget`."""
        return Rows((await self._call("budget", parties=list(parties)))["parties"])


class AsyncRun:
    """A job at the coordinator; the names are those of `Run`, and calls are awaited."""

    def __init__(self, client: AsyncClient, id: str) -> None:
        self._client = client
        #: The job's id.
        self.id = id

    async def status(self) -> dict[str, Any]:
        """Returns the job's state, as `Run.status`."""
        state: dict[str, Any] = await self._client._call("status", id=self.id)
        return state

    async def watch(self, *, progress: Progress = True) -> AsyncRun:
        """Follows the job until it has ended, as `Run.watch`. A cancelled task ends the watching, not the job."""
        await self._client._call("watch", progress, id=self.id)
        return self

    async def cancel(self) -> dict[str, Any]:
        """Ends the job, as `Run.cancel`."""
        state: dict[str, Any] = await self._client._call("cancel", id=self.id)
        return state

    async def result(self) -> Result:
        """Fetches the result, as `Run.result`."""
        return Result(await self._client._call("result", id=self.id))

    async def report(self, *, per: Sequence[str] = ()) -> Report:
        """Returns the report as one HTML page, as `Run.report`."""
        return Report(await self._client._call("report", id=self.id, per=list(per)))

    async def extend(self, *, draws: int | None = None, epsilon: float | None = None) -> AsyncRun:
        """Continues the chains of an ended job as a new one, as `Run.extend`."""
        answer = await self._client._call("extend", id=self.id, draws=draws, epsilon=epsilon)
        _warn_all(answer["warnings"])
        return AsyncRun(self._client, answer["job"])

    async def refit(
        self,
        *,
        priors: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        without: Sequence[str] = (),
        draws: int | None = None,
        chains: int | None = None,
        seed: int | None = None,
    ) -> Result:
        """Infers another posterior from the job's releases, as `Run.refit`."""
        return Result(await self._client._call("refit", id=self.id, changes=_changes(priors, drop, without, draws, chains, seed)))

    async def job(self) -> Job:
        """Returns the job, byte for byte as it was signed."""
        return Job(await self._client._call("job", id=self.id))

    def __repr__(self) -> str:
        return f"<AsyncRun {self.id}>"
