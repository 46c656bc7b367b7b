"""The command line `conclave`, within Python."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from . import _conclave


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line, and returns its exit code.

    Args:
        args: the words after the program's name; by default those of this process.
    """
    # The command line looks for Ctrl-C by itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = list(sys.argv[1:] if args is None else args)
    return _conclave.main([sys.executable, "-m", "conclave"], ["conclave", *words])


if __name__ == "__main__":
    sys.exit(main())
