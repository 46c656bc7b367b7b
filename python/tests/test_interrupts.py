"""Ctrl-C, callbacks, threads, and forks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pandas
import pytest

import conclave as cv
from conclave import _rehearsal
from conftest import HANGS


def interrupt_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_ctrl_c_ends_a_rehearsal_and_keeps_its_draws(slow_job: cv.Job, frames: dict[str, pandas.DataFrame]) -> None:
    cv.rehearse(slow_job.replace(sampler={"draws": 5}), frames, progress=False, anyway=True)
    began: list[float] = []

    def interrupt_once(state: dict[str, Any]) -> None:
        if state["draws"] > 3 and not began:
            began.append(time.monotonic() + 0.1)
            interrupt_after(0.1)

    with pytest.raises(cv.Interrupted) as stopped:
        cv.rehearse(slow_job, frames, progress=interrupt_once, anyway=True)
    took = time.monotonic() - began[0]
    print(f"a rehearsal ended {took:.2f} s after Ctrl-C")
    assert took < HANGS
    assert isinstance(stopped.value, KeyboardInterrupt) and stopped.value.result is not None
    assert stopped.value.result.posterior["age"].size > 0 and stopped.value.result.json["stopped_by"] == "cancelled"


class Signals:
    """A table that is interrupted while it is handed over."""

    def __init__(self, table: pandas.DataFrame) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return self.table.__arrow_c_stream__(requested_schema)


def test_a_signal_before_the_first_draw_is_an_interrupt_without_a_result(slow_job: cv.Job, frames: dict[str, pandas.DataFrame]) -> None:
    with pytest.raises(cv.Interrupted, match="before its first draw") as stopped:
        cv.rehearse(slow_job, {party: Signals(table) for party, table in frames.items()}, progress=False, anyway=True)
    assert stopped.value.result is None


def test_a_signal_in_a_callback_keeps_the_draws(slow_job: cv.Job, frames: dict[str, pandas.DataFrame]) -> None:
    def interrupt(state: dict[str, Any]) -> None:
        if state["draws"] > 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(cv.Interrupted) as stopped:
        cv.rehearse(slow_job, frames, progress=interrupt, anyway=True)
    assert stopped.value.result is not None and stopped.value.result.posterior["age"].shape[1] > 3


def test_a_signal_after_the_last_draw_keeps_them_all(
    job: cv.Job, frames: dict[str, pandas.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = _rehearsal._conclave.rehearse

    def late(*arguments: Any) -> BaseException | None:
        answer = ended(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        return answer

    monkeypatch.setattr(_rehearsal._conclave, "rehearse", late)
    with pytest.raises(cv.Interrupted) as stopped:
        cv.rehearse(job, frames, seed=7, progress=False)
    assert stopped.value.result is not None and stopped.value.result.json.get("stopped_by") != "cancelled"


def test_a_callback_sees_states_and_its_exception_ends_the_call(slow_job: cv.Job, frames: dict[str, pandas.DataFrame]) -> None:
    seen: list[dict[str, Any]] = []

    def stop(state: dict[str, Any]) -> None:
        seen.append(state)
        if state["draws"] > 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        cv.rehearse(slow_job, frames, progress=stop, anyway=True)
    assert seen[-1]["draws"] > 3 and set(seen[-1]) == {"state", "phase", "iterations", "draws", "draws_asked"}


def test_other_threads_run_meanwhile(slow_job: cv.Job, frames: dict[str, pandas.DataFrame]) -> None:
    counted, done = [0], threading.Event()

    def count() -> None:
        while not done.wait(0.01):
            counted[0] += 1

    threading.Thread(target=count, daemon=True).start()
    interrupt_after(1.0)
    with pytest.raises(cv.Interrupted):
        cv.rehearse(slow_job, frames, progress=False, anyway=True)
    done.set()
    assert counted[0] > 5


def test_threads_rehearse_at_once(job: cv.Job, frames: dict[str, pandas.DataFrame]) -> None:
    found: list[cv.Result] = []
    run = lambda: found.append(cv.rehearse(job, frames, seed=7, progress=False))  # noqa: E731
    threads = [threading.Thread(target=run) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len({result.posterior["age"].tobytes() for result in found}) == 1 and len(found) == 4


def _in_child(send: Any, job: cv.Job, tables: dict[str, pandas.DataFrame]) -> None:
    send.send(cv.rehearse(job, tables, seed=7, progress=False).posterior["age"].tobytes())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_rehearses(job: cv.Job, frames: dict[str, pandas.DataFrame]) -> None:
    expected = cv.rehearse(job, frames, seed=7, progress=False).posterior["age"].tobytes()
    # pyarrow, by which pandas hands its tables over, has threads of its own: the child's tables are polars'.
    import polars

    tables = {party: polars.from_pandas(table) for party, table in frames.items()}
    receive, send = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(send, job, tables))
    child.start()
    assert receive.poll(60), "the child hangs"
    assert receive.recv() == expected
    child.join(10)
    assert child.exitcode == 0


def test_nothing_but_numpy_is_needed() -> None:
    code = """
import sys
import conclave
loaded = {"numpy", "pandas", "xarray", "arviz", "arviz_base", "polars", "pyarrow", "IPython", "matplotlib"} & set(sys.modules)
assert loaded <= {"numpy"}, loaded
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
