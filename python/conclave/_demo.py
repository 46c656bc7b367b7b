"""The demo: a coordinator and data owners with simulated records, each in its own process on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from ._client import Client
from .errors import ConclaveError, InternalError

#: Seconds after which a demo that has not begun is given up.
_PATIENCE = 180.0


class Demo:
    """A running demo. It ends with `close`, with the block of a `with` statement, and with this process."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, coordinator: str, owned: bool) -> None:
        self._process, self._owned = process, owned
        #: The folder with the identities, configurations, ledgers and records of the demo.
        self.folder = folder
        #: The coordinator's address.
        self.coordinator = coordinator

    @property
    def identity(self) -> Path:
        """The identity folder of the demo's analyst."""
        return self.folder / "alice" / "identity"

    def client(self) -> Client:
        """Returns a client of the demo's coordinator, as the demo's analyst."""
        return Client(self.coordinator, self.identity)

    def close(self) -> None:
        """Ends the demo, and removes its folder unless you named one."""
        if self._process.poll() is None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._owned:
            shutil.rmtree(self.folder.parent, ignore_errors=True)

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass

    def __repr__(self) -> str:
        state = "running" if self._process.poll() is None else "ended"
        return f"<Demo at {self.coordinator}, {state}>"


def demo(
    rows: int = 10_000,
    parties: int = 3,
    *,
    algorithm: str = "auto",
    epsilon: float = 3.0,
    seed: int = 1,
    folder: str | Path | None = None,
) -> Demo:
    """Starts a coordinator and data owners on this machine, and runs a first job there.

    Args:
        rows: simulated records of each owner.
        parties: the number of data owners.
        algorithm: the algorithm of the first job, such as "auto" or "penalty".
        epsilon: the budget of the first job; each owner's budget is a multiple of it.
        seed: the seed of the simulated records.
        folder: a new folder for the demo's files, which then stay; by default a temporary one.

    Raises:
        InternalError: the demo failed; the message has the end of its log.
    """
    owned = folder is None
    place = Path(tempfile.mkdtemp(prefix="conclave-demo-")) / "demo" if folder is None else Path(folder)
    log = tempfile.NamedTemporaryFile(prefix="conclave-demo-", suffix=".log", delete=False)
    options = {"rows": rows, "parties": parties, "algorithm": algorithm, "epsilon": epsilon, "seed": seed, "out": place}
    words = [f"--{key}={value}" for key, value in options.items()]
    command = [sys.executable, "-m", "conclave._demo_child", *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
    running = Demo(process, place, "", owned)
    try:
        running.coordinator = _wait(process, place, Path(log.name))
    except BaseException:
        running.close()
        raise
    finally:
        log.close()
        os.unlink(log.name)
    return running


def _wait(process: subprocess.Popen[bytes], folder: Path, log: Path) -> str:
    """Waits for the end of the first job, and returns the coordinator's address."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        text = log.read_text(errors="replace")
        if "the pages stay up until Ctrl-C" in text:
            listening = next(line for line in text.splitlines() if line.startswith("The coordinator listens on "))
            return "https://" + listening.removeprefix("The coordinator listens on ").split(";")[0]
        if process.poll() is not None:
            break
        time.sleep(0.05)
    ended = "\n".join(log.read_text(errors="replace").splitlines()[-12:])
    error: ConclaveError = InternalError(f"the demo did not start in {folder}; it printed\n{ended}")
    raise error


def _end_with_stdin() -> None:
    """Interrupts this process once its standard input closes."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGINT)
