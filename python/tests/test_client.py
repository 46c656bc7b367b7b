"""A coordinator's jobs, against the demo that the package carries."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conclave as cv
from conftest import HANGS


@pytest.fixture(scope="module")
def quick(demo: cv.Demo) -> cv.Job:
    return cv.Job.read(demo.folder / "job.toml").replace(name="quick", privacy={"epsilon": 1.0})


@pytest.fixture(scope="module")
def finished(client: cv.Client, quick: cv.Job) -> cv.Run:
    return client.submit(quick, anyway=True).watch(progress=False)


def test_a_job_is_submitted_watched_and_fetched(client: cv.Client, finished: cv.Run, quick: cv.Job) -> None:
    assert finished.status()["state"] == "finished"
    result = finished.result()
    assert result.json["job"] == finished.id and result.posterior["intercept"].ndim == 2
    assert finished.job.name == "quick" and "force = true" in finished.job.toml
    assert client.run(finished.id[:13]).id == finished.id
    runs = client.jobs()
    assert finished.id in [run.id for run in runs] and "finished" in repr(runs) and "<table>" in runs._repr_html_()
    assert {row["party"] for row in client.budget()} == set(quick.parties)
    assert finished.report().startswith("<!doctype html>") and "<iframe" in finished.report()._repr_html_()
    again = finished.refit(draws=50)
    assert again.json["refit_of"] == finished.id and again.posterior["intercept"].shape[1] == 50
    assert again.predict is not None and finished.refit().posterior["intercept"].tobytes() == result.posterior["intercept"].tobytes()


def test_a_report_is_written_to_a_new_file(finished: cv.Run, folder: Path) -> None:
    page = finished.report(folder / "report.html")
    assert (folder / "report.html").read_text() == page
    with pytest.raises(cv.InvalidInput, match="already exists"):
        finished.report(folder / "report.html")


def test_errors_have_their_class(client: cv.Client, demo: cv.Demo, finished: cv.Run, long: cv.Job, folder: Path) -> None:
    with pytest.raises(cv.NotFound, match=r"client\.jobs\(\)"):
        client.run("00000")
    with pytest.raises(cv.InvalidInput, match="role analyst is required"):
        cv.Client(demo.coordinator, next(demo.folder.glob("hospital-a/identity"))).jobs()
    with pytest.raises(cv.Unreachable):
        cv.Client("https://127.0.0.1:1", demo.identity).jobs()
    with pytest.raises((cv.PolicyRefused, cv.BudgetSpent)) as refused:
        client.submit(long.replace(privacy={"epsilon": 1000.0}), anyway=True).watch(progress=False)
    assert refused.value.message
    with pytest.raises(cv.InvalidInput, match="CONCLAVE_COORDINATOR"):
        cv.Client()


def test_a_running_job_is_stopped_extended_and_followed(client: cv.Client, long: cv.Job) -> None:
    run = client.submit(long, anyway=True)
    with pytest.raises(cv.NotFound, match=r"\.watch\(\)"):
        run.result()
    seen: list[dict[str, Any]] = []

    def stop(state: dict[str, Any]) -> None:
        seen.append(state)
        if state.get("draws", 0) > 5:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run.watch(progress=stop)
    assert seen[-1]["parties"][0]["epsilon_spent"] > 0 and run.status()["state"] == "running"
    began = time.monotonic()
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        run.watch(progress=False)
    took = time.monotonic() - began - 1.0
    print(f"the watching ended {took:.2f} s after Ctrl-C")
    assert took < HANGS
    assert run.status()["state"] == "running"
    assert run.cancel()["state"] in ("cancelled", "running")
    while run.status()["state"] == "running":
        time.sleep(0.05)
    assert run.result().posterior["intercept"].size > 0
    more = run.extend(draws=3, epsilon=0.5)
    assert more.id != run.id
    more.watch(progress=False)


KILLED = """
import sys, conclave as cv
client = cv.Client(sys.argv[1], sys.argv[2])
run = client.submit(cv.Job(open(sys.argv[3]).read()), anyway=True)
print(run.id, flush=True)
run.watch(progress=False)
"""


def test_a_killed_process_leaves_its_job(client: cv.Client, demo: cv.Demo, long: cv.Job, folder: Path) -> None:
    long.replace(name="killed", privacy={"epsilon": 1.0}, sampler={"draws": 400}).write(folder / "job.toml")
    words = [sys.executable, "-c", KILLED, demo.coordinator, str(demo.identity), str(folder / "job.toml")]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    id = child.stdout.readline().strip()
    time.sleep(0.5)
    child.kill()
    child.wait()
    run = client.jobs()[0]
    assert run.id == id
    run.watch(progress=False)
    assert run.result().posterior["intercept"].size > 0


def _in_child(send: Any, client: cv.Client, place: tuple[str, Path]) -> None:
    began = time.monotonic()
    try:
        client.jobs()
        send.send(("answered", 0.0, 0))
    except cv.InvalidInput as error:
        took = time.monotonic() - began
        send.send((str(error), took, len(cv.Client(*place).jobs())))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_refused_by_name(client: cv.Client, demo: cv.Demo) -> None:
    receive, send = multiprocessing.Pipe()
    place = (demo.coordinator, demo.identity)
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(send, client, place))
    child.start()
    assert receive.poll(30), "the child hangs"
    words, took, jobs = receive.recv()
    print(f"the child was refused after {took:.3f} s")
    assert "forked" in words and "make a Client" in words and took < HANGS
    assert jobs == len(client.jobs())
    child.join(10)
    assert child.exitcode == 0


def test_exit_while_watching(demo: cv.Demo, long: cv.Job, folder: Path, client: cv.Client) -> None:
    code = """
import sys, threading, time, conclave as cv
client = cv.Client(sys.argv[1], sys.argv[2])
run = client.jobs()[0]
threading.Thread(target=lambda: run.watch(progress=False), daemon=True).start()
time.sleep(0.3)
"""
    client.submit(long.replace(name="exit", privacy={"epsilon": 1.0}), anyway=True)
    done = subprocess.run([sys.executable, "-c", code, demo.coordinator, str(demo.identity)], timeout=30, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    client.jobs()[0].cancel()


def test_the_asynchronous_twin_does_the_same(demo: cv.Demo, quick: cv.Job, finished: cv.Run) -> None:
    async def all_at_once() -> tuple[list[cv.Result], int, list[dict[str, Any]]]:
        client = cv.AsyncClient(demo.coordinator, demo.identity)
        states: list[dict[str, Any]] = []
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.005)
                beats += 1

        heart = asyncio.create_task(beat())
        runs = await asyncio.gather(*(client.submit(quick.replace(name=f"async-{at}", sampler={"seed": at}), anyway=True) for at in range(2)))
        await asyncio.gather(*(run.watch(progress=states.append) for run in runs))
        results = await asyncio.gather(*(run.result() for run in runs))
        assert (await client.run(finished.id)).id == finished.id and len(await client.jobs()) >= 3
        assert (await runs[0].job()).name == "async-0" and (await runs[0].report()).startswith("<!doctype")
        assert (await client.budget())[0]["party"]
        with pytest.raises(cv.NotFound):
            await client.run("00000")
        heart.cancel()
        return list(results), beats, states

    results, beats, states = asyncio.run(all_at_once())
    assert beats > 5 and states[-1]["state"] == "finished"
    assert not np.array_equal(results[0].posterior["intercept"], results[1].posterior["intercept"])


def test_a_cancelled_task_ends_the_watching_alone(demo: cv.Demo, long: cv.Job, client: cv.Client) -> None:
    async def watch() -> str:
        run = await cv.AsyncClient(demo.coordinator, demo.identity).submit(long.replace(name="task", privacy={"epsilon": 1.0}), anyway=True)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(run.watch(progress=False), 0.5)
        return run.id

    run = client.run(asyncio.run(watch()))
    assert run.status()["state"] in ("running", "queued", "opening")
    run.cancel()
