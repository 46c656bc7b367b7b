"""Progress: one line in a notebook, one on a terminal, elsewhere nothing; or a callable that is given each state."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Union

#: True, False, or a callable that is given each state, a dict.
Progress = Union[bool, Callable[[dict[str, Any]], object]]


def _line(state: dict[str, Any]) -> str:
    if "notice" in state:
        return str(state["notice"])
    words = [str(state.get("phase") or state.get("state", ""))]
    if state.get("waiting_for"):
        words = [f"waiting for {', '.join(state['waiting_for'])}"]
    words.append(f"{state.get('draws', 0):,} of {state.get('draws_asked', 0):,} draws per chain, round {state.get('iterations', 0):,}")
    if state.get("rounds_per_second"):
        words.append(f"{state['rounds_per_second']:.0f} rounds/s")
    if state.get("seconds_left") is not None:
        words.append(f"about {state['seconds_left']:.0f} s left")
    if state.get("ended_by"):
        words.append(f"the budget of {state['ended_by']} ends it")
    return "; ".join(words)


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")


class _Line:
    """The line of a call. It is removed at the end."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._terminal = sys.stderr.isatty() if not _in_notebook() else False
        self._width = 0
        if _in_notebook():
            from IPython.display import display

            self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, state: dict[str, Any]) -> None:
        text = _line(state)
        if self._handle is not None:
            self._handle.update({"text/plain": text}, raw=True)
        elif self._terminal:
            self._write(text)

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width)[:200])
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
        elif self._terminal and self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()


class _Shown:
    """A context manager that gives the callback of a native call, or None."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._line: _Line | None = None

    def __enter__(self) -> Callable[[str], None] | None:
        if callable(self._progress):
            call = self._progress
            return lambda text: _none(call(json.loads(text)))
        if not self._progress:
            return None
        line = self._line = _Line()
        return lambda text: line.show(json.loads(text))

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.close()


def _none(_: object) -> None:
    return None
