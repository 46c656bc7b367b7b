#!/usr/bin/env python3
"""Runs the ignored tests of every test binary, two binaries at a time: most of them keep one processor busy.

Prints each binary's output as it ends, with its time, and ends with 1 where one failed.
"""
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

# What only measures, and what needs a machine with nothing else to do.
SKIPPED = ["kernel_speed", "a_million_releases", "reply_times", "every_daemon_is_replaced"]
# Seconds for each fuzzed decoder.
FUZZ = 60
# The longest first, so that none of them is left running alone at the end.
LONGEST = ["kills", "simulation", "durability", "adult", "demo_seeds", "demo_design", "gaussian_mean", "fuzz", "information", "posteriors"]


def binaries():
    build = subprocess.run(
        ["cargo", "test", "--workspace", "--no-run", "--message-format=json"], stdout=subprocess.PIPE, text=True, check=True
    )
    for line in build.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            yield message["target"]["name"], message["executable"], os.path.dirname(message["manifest_path"])


def rank(found):
    name = found[0]
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def run(found):
    name, executable, folder = found
    skips = [word for test in SKIPPED for word in ("--skip", test)]
    started = time.monotonic()
    # As cargo runs it: in its package's folder.
    environment = {**os.environ, "CARGO_MANIFEST_DIR": folder}
    what = ["--ignored", *skips]
    if name == "fuzz":
        # Its tests are quick ones that take as long as they are told.
        environment["CONCLAVE_FUZZ_SECONDS"], what = str(FUZZ), ["--test-threads=2"]
    ended = subprocess.run(
        [executable, "--nocapture", *what], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace",
    )
    if "running 0 tests" not in ended.stdout:
        sys.stdout.write(f"\n-- {name} ({time.monotonic() - started:.0f} s)\n{ended.stdout}")
        sys.stdout.flush()
    return ended.returncode == 0


with ThreadPoolExecutor(2) as pool:
    passed = list(pool.map(run, sorted(binaries(), key=rank)))
sys.exit(0 if all(passed) else 1)
