"""The process of a demo that another Python process started: it ends with it."""

import sys
import threading

from .__main__ import main
from ._demo import _end_with_stdin

if __name__ == "__main__":
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    sys.exit(main(["demo", "--pages", *sys.argv[1:]]))
