"""The stop button of a notebook: a kernel is interrupted as Jupyter does it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.manager import KernelManager, start_new_kernel

import conclave as cv
from conftest import HANGS


class Kernel:
    """A kernel, and what its cells print."""

    def __init__(self, manager: KernelManager, client: Any) -> None:
        self.manager, self.client = manager, client

    def start(self, code: str) -> str:
        """Starts a cell, and returns its message."""
        return str(self.client.execute(code))

    def outputs(self, message: str) -> Iterator[str]:
        """The texts that a cell shows, until it has ended."""
        while True:
            got = self.client.get_iopub_msg(timeout=HANGS)
            if got["parent_header"].get("msg_id") != message:
                continue
            content = got["content"]
            if got["msg_type"] == "error":
                raise AssertionError("\n".join(content["traceback"]))
            if got["msg_type"] == "status" and content["execution_state"] == "idle":
                return
            yield str(content.get("text") or content.get("data", {}).get("text/plain", ""))

    def run(self, code: str) -> str:
        """Runs a cell to its end."""
        return "".join(self.outputs(self.start(code)))

    def stopped(self, code: str) -> float:
        """Runs a cell, presses stop once it shows draws, and returns the seconds that the cell takes from there."""
        pressed = None
        for text in self.outputs(self.start(code)):
            shown = re.search(r"([\d,]+) of [\d,]+ draws", text)
            if pressed is None and shown and int(shown[1].replace(",", "")) > 3:
                pressed = time.monotonic()
                self.manager.interrupt_kernel()
        assert pressed is not None, "the cell showed no draws"
        return time.monotonic() - pressed


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    manager, client = start_new_kernel(kernel_name="python3", env={**os.environ, "JUPYTER_PLATFORM_DIRS": "1"})
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_stop_button_ends_a_rehearsal_and_keeps_its_draws(kernel: Kernel, slow_job: cv.Job) -> None:
    kernel.run(f"import conclave as cv, pandas, numpy as np\njob = cv.Job({slow_job.toml!r})")
    kernel.run("""
rng = np.random.default_rng(1)
def frame():
    return pandas.DataFrame({"died": rng.binomial(1, 0.3, 2000), "age": rng.uniform(20, 90, 2000), "ward": rng.choice(["east", "west"], 2000)})
frames = {party: frame() for party in job.parties}
""")
    took = kernel.stopped("""
try:
    cv.rehearse(job, frames, anyway=True)
except cv.Interrupted as stopped:
    kept = stopped.result
""")
    print(f"a cell that rehearses ended {took:.2f} s after the stop button")
    assert took < HANGS
    assert int(kernel.run("print(kept.posterior['age'].shape[1])")) > 3


def test_the_stop_button_ends_the_watching_and_not_the_job(kernel: Kernel, demo: cv.Demo, client: cv.Client, long: cv.Job) -> None:
    kernel.run(f"import conclave as cv\njob = cv.Job({long.replace(name='stopped').toml!r})")
    kernel.run(f"run = cv.Client({demo.coordinator!r}, {str(demo.identity)!r}).submit(job, anyway=True)")
    took = kernel.stopped("""
try:
    run.watch()
except KeyboardInterrupt:
    pass
""")
    print(f"a cell that watches ended {took:.2f} s after the stop button")
    assert took < HANGS
    assert kernel.run("print(run.status()['state'])").strip() == "running"
    assert kernel.run("print(run.cancel()['state'])").strip() in ("cancelled", "running")
