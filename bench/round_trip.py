#!/usr/bin/env python3
"""Compares a round of three parties with a fan-out of pytensor-federated over three nodes, alternating in one run.

Ours are real processes: a coordinator and three parties with 1,000 records each, one chain, mutual TLS, a durable ledger, no reply delay.
The time of a round is taken from the coordinator's iteration log: the time from one complete round to the next. The peer's nodes are
processes too, without TLS, noise or records.

    python3 bench/round_trip.py --work DIR [--ledgers DIR2] [--repeats 5] [--rounds 3000] [--json]

Builds `conclave` in release mode, and creates DIR/venv with pytensor-federated if it is missing. `--ledgers` names a folder on another
file system, to measure with ledgers there.
"""
import argparse
import json
import os
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PARTIES = 3
ROWS = 1000
# Targets for the ratio to the peer.
ASKED = {"strict": 0.5, "reserve": 0.25}


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def build():
    run("cargo", "build", "--release", "--quiet", "-p", "conclave", cwd=ROOT)
    metadata = run("cargo", "metadata", "--no-deps", "--format-version", "1", cwd=ROOT, capture_output=True)
    return Path(json.loads(metadata.stdout)["target_directory"]) / "release" / "conclave"


def peer_python(work):
    python = work / "venv" / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", work / "venv")
        run(python, "-m", "pip", "install", "--quiet", "pytensor-federated")
    return python


def fdatasync_us(folder, times=300):
    """Returns the median time of an fdatasync after appending a page, in microseconds."""
    took = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(times):
            os.write(file.fileno(), bytes(4096))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(1e6 * (time.perf_counter() - began))
    return statistics.median(took)


def free_ports(many):
    held = [socket.socket() for _ in range(many)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def peer(python, calls):
    """Returns the peer's median fan-out time in microseconds."""
    script, ports = HERE / "ptf_fan_out.py", free_ports(PARTIES)
    quiet = {"stderr": subprocess.DEVNULL, "text": True}
    nodes = [subprocess.Popen([python, script, "serve", str(port)], stdout=subprocess.PIPE, **quiet) for port in ports]
    try:
        for node in nodes:
            node.stdout.readline()
        asked = run(python, script, "ask", calls, *ports, stdout=subprocess.PIPE, **quiet)
    finally:
        for node in nodes:
            node.kill()
    return statistics.median(json.loads(asked.stdout))


def ours(conclave, folder, durability, rounds):
    """Returns our median time of a round in microseconds."""
    out = folder / f"round-trip-{durability}"
    shutil.rmtree(out, ignore_errors=True)
    # The budget suffices for all rounds.
    run(conclave, "demo", "--algorithm", "penalty", "--parties", PARTIES, "--rows", ROWS, "--chains", 1, "--draws", rounds, "--epsilon", 490,
        "--durability", durability, "--out", out, "--json", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    store = sqlite3.connect(out / "coordinator" / "coordinator.sqlite")
    elapsed = [row[0] for row in store.execute("SELECT elapsed_us FROM rounds ORDER BY iteration")]
    store.close()
    shutil.rmtree(out)
    # The search and the warm-up come first.
    elapsed = elapsed[-rounds:]
    return statistics.median(after - before for before, after in zip(elapsed, elapsed[1:]))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--work", type=Path, required=True, help="folder for the peer's environment and our files")
    arguments.add_argument("--ledgers", type=Path, help="folder for the processes' files, including ledgers; default: --work")
    arguments.add_argument("--binary", type=Path, help="a conclave program already built")
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--rounds", type=int, default=3000)
    arguments.add_argument("--json", action="store_true", help="print only one JSON object on standard output")
    asked = arguments.parse_args()
    folder = asked.ledgers or asked.work
    for path in (asked.work, folder):
        path.mkdir(parents=True, exist_ok=True)
    conclave, python = asked.binary or build(), peer_python(asked.work)
    figures = {"fdatasync": [], "peer": [], "strict": [], "reserve": []}
    for _ in range(asked.repeats):
        figures["fdatasync"].append(fdatasync_us(folder))
        figures["peer"].append(peer(python, asked.rounds))
        for durability in ASKED:
            figures[durability].append(ours(conclave, folder, durability, asked.rounds))
    medians = {name: statistics.median(values) for name, values in figures.items()}
    ratios = {name: statistics.median(o / p for o, p in zip(figures[name], figures["peer"])) for name in ASKED}
    if asked.json:
        print(json.dumps({"median_us": medians, "ratio": ratios, "asked": ASKED, "repeats_us": figures}))
        return
    print(f"median of {asked.repeats} repeats of {asked.rounds} rounds, {PARTIES} parties, {ROWS} records each, one chain")
    print(f"{'fdatasync':24}{medians['fdatasync']:10.0f} us")
    print(f"{'pytensor-federated':24}{medians['peer']:10.0f} us")
    for name, bound in ASKED.items():
        print(f"{'conclave, ' + name:24}{medians[name]:10.0f} us   ratio {ratios[name]:.3f}, target {bound}")


if __name__ == "__main__":
    main()
