#!/usr/bin/env python3
"""What watching costs the driver: rounds a second with the job's page open, against without, in turns within one run.

  cargo build --release -p conclave && bench/watching.py --conclave target/release/conclave

Prints the medians and the median ratio of neighbouring turns; asked is a cost below 2%.
"""

import argparse
import re
import signal
import sqlite3
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path


def rounds(store):
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        return (connection.execute("SELECT iteration FROM rounds ORDER BY job DESC, iteration DESC LIMIT 1").fetchone() or [0])[0]


def watch(url, token, stop, seen):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as events:
        while not stop.is_set():
            line = events.readline()
            seen[0] += len(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conclave", default="target/release/conclave", type=Path)
    parser.add_argument("--turns", default=24, type=int, help="pairs of turns")
    parser.add_argument("--seconds", default=2.0, type=float, help="of one turn")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "demo"
        demo = subprocess.Popen(
            [args.conclave, "demo", "--pages", "--rows", "1000", "--draws", "1000000", "--chains", "2", "--epsilon", "500", "--durability", "reserve",
             "--out", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            log, address = folder / "logs" / "coordinator.log", None
            while not address:
                time.sleep(0.2)
                found = log.exists() and re.search(r"dashboard at (http://[^/\s]+)/", log.read_text())
                address = found and found.group(1)
            token = (folder / "coordinator" / "dashboard-token").read_text().strip()
            store = folder / "coordinator" / "coordinator.sqlite"
            request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
            job = None
            while not job:
                time.sleep(0.5)
                job = re.search(r"/jobs/([0-9a-f-]{36})", urllib.request.urlopen(request).read().decode())
            url = f"{address}/jobs/{job.group(1)}/events"
            while rounds(store) < 2000:
                time.sleep(0.5)
            rates = {True: [], False: []}
            for turn in range(2 * args.turns):
                # Now this one first, now that one: what drifts falls on both.
                watched = turn % 4 in (1, 2)
                stop, seen = threading.Event(), [0]
                if watched:
                    threading.Thread(target=watch, args=(url, token, stop, seen), daemon=True).start()
                time.sleep(0.5)
                first, begin = rounds(store), time.monotonic()
                time.sleep(args.seconds)
                rate = (rounds(store) - first) / (time.monotonic() - begin)
                stop.set()
                rates[watched].append(rate)
                print(f"{'watched ' if watched else 'alone   '} {rate:8.1f} rounds/s {seen[0]:>10} bytes", flush=True)
                if demo.poll() is not None:
                    raise SystemExit("the demo ended too early: raise its epsilon")
            # Each turn against its neighbour: what else the machine does falls on both.
            ratios = sorted(watched / alone for watched, alone in zip(rates[True], rates[False]))
            low, high = ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]
            alone, watched, ratio = (statistics.median(r) for r in (rates[False], rates[True], ratios))
            print(f"alone {alone:.1f}, watched {watched:.1f} rounds/s; ratio of neighbouring turns {ratio:.4f} (quartiles {low:.4f} to "
                  f"{high:.4f}): watching costs {100 * (1 - ratio):.2f}%")
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(timeout=60)


if __name__ == "__main__":
    main()
