#!/usr/bin/env python3
"""Measures the cost of watching for the driver, and the response time of a job's page.

  cargo build --release -p conclave && bench/watching.py --conclave target/release/conclave

First it compares rounds per second with and without the job's page open, alternating within one run. It prints the medians and the median ratio
of adjacent turns; the target is a cost below 2%. Then it measures, for a running job with many draws, the seconds from the request of its page
over a socket to the page's last byte, each time when its plots are due to be redrawn; the target is at most 0.2 with a million draws. The
largest budget of a demo allows about 300,000. The data behind the plots does not grow with the draws, and `a_page_of_a_million_draws` in the
dashboard's tests measures a million.
"""

import argparse
import contextlib
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


class Demo:
    """A demo with its pages, and a client for them."""

    def __init__(self, folder, process):
        self.process, self.store = process, folder / "coordinator" / "coordinator.sqlite"
        log, address = folder / "logs" / "coordinator.log", None
        while not address:
            self.pause(0.2)
            found = log.exists() and re.search(r"dashboard at (http://[^/\s]+)/", log.read_text())
            address = found and found.group(1)
        self.token = (folder / "coordinator" / "dashboard-token").read_text().strip()
        job = None
        while not job:
            self.pause(0.5)
            job = re.search(r"/jobs/([0-9a-f-]{36})", self.ask(address).read().decode())
        self.page = f"{address}/jobs/{job.group(1)}"

    def pause(self, seconds):
        time.sleep(seconds)
        if self.process.poll() is not None:
            raise SystemExit("the demo ended too early: raise its epsilon")

    def ask(self, url):
        return urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": f"Bearer {self.token}"}))

    def rounds(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)) as connection:
            found = connection.execute("SELECT iteration FROM rounds ORDER BY job DESC, iteration DESC LIMIT 1").fetchone()
        return (found or [0])[0]

    def watch(self, stop, seen):
        with self.ask(f"{self.page}/events") as events:
            while not stop.is_set():
                seen[0] += len(events.readline())


@contextlib.contextmanager
def demo(conclave, epsilon, *more):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "demo"
        process = subprocess.Popen(
            [conclave, "demo", "--algorithm", "penalty", "--pages", "--rows", "1000", "--draws", "1000000", "--epsilon", epsilon, "--durability", "reserve", "--out", folder, *more],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield Demo(folder, process)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def rates(run, turns, seconds):
    while run.rounds() < 2000:
        run.pause(0.5)
    rates = {True: [], False: []}
    for turn in range(2 * turns):
        # The order alternates, so that drift affects both.
        watched = turn % 4 in (1, 2)
        stop, seen = threading.Event(), [0]
        if watched:
            threading.Thread(target=run.watch, args=(stop, seen), daemon=True).start()
        run.pause(0.5)
        first, begin = run.rounds(), time.monotonic()
        run.pause(seconds)
        rate = (run.rounds() - first) / (time.monotonic() - begin)
        stop.set()
        rates[watched].append(rate)
        print(f"{'watched ' if watched else 'alone   '} {rate:8.1f} rounds/s {seen[0]:>10} bytes", flush=True)
    # Each turn is compared with its neighbour, so that other load affects both.
    ratios = sorted(watched / alone for watched, alone in zip(rates[True], rates[False]))
    low, high = ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]
    alone, watched, ratio = (statistics.median(r) for r in (rates[False], rates[True], ratios))
    print(f"alone {alone:.1f}, watched {watched:.1f} rounds/s; ratio of neighbouring turns {ratio:.4f} (quartiles {low:.4f} to "
          f"{high:.4f}): watching costs {100 * (1 - ratio):.2f}%")


def page(run, chains, draws, looks):
    def made():
        found = re.search(r'<progress[^>]* value="(\d+)"', run.ask(run.page).read().decode())
        return chains * int(found.group(1)) if found else 0

    # No one views the page meanwhile, which would distort the measurement.
    while run.rounds() * chains < draws:
        run.pause(2.0)
    while made() < draws:
        run.pause(10.0)
    times = []
    for _ in range(looks):
        # Longer than the cache time of the plots.
        run.pause(25.0)
        begin = time.monotonic()
        size = len(run.ask(run.page).read())
        times.append(time.monotonic() - begin)
        print(f"page of {made()} draws, {size} bytes: {times[-1]:.3f} s", flush=True)
    print(f"a page of {draws} draws and more: median {statistics.median(times):.3f} s, longest {max(times):.3f} s (target 0.2)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conclave", default="target/release/conclave", type=Path)
    parser.add_argument("--turns", default=24, type=int, help="pairs of turns; 0 for none")
    parser.add_argument("--seconds", default=2.0, type=float, help="length of one turn")
    parser.add_argument("--page-draws", default=100_000, type=int, help="draws of the job whose page is timed; 0 for none")
    parser.add_argument("--looks", default=3, type=int, help="number of requests of its page")
    args = parser.parse_args()
    if args.turns:
        with demo(args.conclave, "500", "--chains", "2") as run:
            rates(run, args.turns, args.seconds)
    if args.page_draws:
        with demo(args.conclave, "500", "--chains", "2") as run:
            page(run, 2, args.page_draws, args.looks)


if __name__ == "__main__":
    main()
