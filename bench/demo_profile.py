#!/usr/bin/env python3
"""Profiles the demo with a chain (`--algorithm penalty`): samples the whole machine while it draws, and counts them by activity.

    python3 bench/demo_profile.py --conclave target/release/conclave --out DIR [--seconds 6] [-- DEMO OPTIONS]

Needs Linux's `perf` and permission to profile the whole machine (root, or kernel.perf_event_paranoid at -1). A sample is counted by its
thread and its function. An idle processor waits for the disk or for another process: in strict mode mostly for the ledgers' fdatasync.
"""
import argparse
import collections
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

# By thread.
SYNC_THREADS = re.compile(r"^(kworker|jbd2|loop|ksoftirqd|nvme|virtio)")
OURS = re.compile(r"^(conclave|coordinator|tokio|answers|noise|store|kernel|rayon|party)")
# By function; the first match counts.
FUNCTIONS = [
    ("noise", re.compile(r"conclave_privacy::mechanism::(coins|discrete_gaussian|noise_sample)|conclave_vault::(noise|ledger::release)|chacha")),
    ("kernels", re.compile(r"conclave_common::model|conclave_privacy::pass|conclave_privacy::mechanism::(clamp|quantiser|sum)|pulp::|conclave_vault::answer::sums")),
    ("sampler", re.compile(r"conclave_inference::sampler|conclave_common::parameter|conclave_coordinator::(driver|spending|zarr)")),
    ("wire", re.compile(r"h2::|hyper|tonic|prost::|rustls|ring_|ring::|tokio|http::|bytes::|conclave_proto|mio::|aes_|gcm_|hpack|tower")),
    ("ledger", re.compile(r"sqlite|rusqlite|wal[A-Z]|pcache|btree|Btree|pager|Pager|unix[A-Z]|sha2::|conclave_vault::ledger|accounting")),
]
ORDER = ["kernels", "sync", "wire", "noise", "ledger", "sampler", "other of ours"]
TITLES = {"sync": "sync: the ledgers' writes and fdatasync, in the kernel", "wire": "wire: sockets, TLS, HTTP/2, threads woken",
          "kernels": "kernels: sums over the records", "noise": "noise: exact discrete Gaussians", "ledger": "ledgers and log: SQLite, hashes, charges",
          "sampler": "sampler and draws"}


def kind(thread, function, image):
    kernel = "kernel" in image or image.startswith("[")
    if thread == "swapper":
        return "idle"
    if SYNC_THREADS.match(thread):
        return "sync"
    if not OURS.match(thread):
        return "other processes"
    if thread.startswith("noise"):
        return "noise"
    if kernel and "vdso" not in image:
        return "sync" if thread.startswith(("answers", "store")) else "wire"
    for name, pattern in FUNCTIONS:
        if pattern.search(function):
            return name
    if thread.startswith(("tokio", "coordinator", "conclave")):
        return "wire"
    return "ledger" if thread.startswith(("answers", "store")) else "other of ours"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--conclave", type=Path, required=True)
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--seconds", type=float, default=6.0)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("demo", nargs="*")
    asked = arguments.parse_args()
    shutil.rmtree(asked.out / "demo", ignore_errors=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    samples = asked.out / "perf.data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    demo = subprocess.Popen([asked.conclave, "demo", "--algorithm", "penalty", "--out", asked.out / "demo", "--json", *asked.demo], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)
    # Wait until the first draws are on disk.
    while demo.poll() is None and not list((asked.out / "demo").glob("coordinator/draws/*.zarr")):
        time.sleep(0.05)
    time.sleep(1)
    subprocess.run(["perf", "record", "-a", "-F", "1999", "-o", samples, "--", "sleep", str(asked.seconds)], check=True, **quiet)
    result = json.loads(demo.communicate()[0])
    lines = subprocess.run(["perf", "script", "-i", samples, "-F", "comm,ip,sym,dso"], capture_output=True, text=True).stdout
    counts, rest = collections.Counter(), collections.Counter()
    for line in lines.splitlines():
        found = re.match(r"\s*(.+?)\s+([0-9a-f]+) (.*) \((.*)\)$", line)
        if not found:
            continue
        thread, _, function, image = found.groups()
        what = kind(thread, function, image)
        counts[what] += 1
        if what == "other of ours":
            rest[f"{thread}: {function}"] += 1
    total, idle, others = sum(counts.values()), counts.pop("idle", 0), counts.pop("other processes", 0)
    busy = total - idle - others
    shares = {name: counts[name] / busy for name in ORDER}
    mainly = sum(shares[name] for name in ("kernels", "sync", "wire"))
    if asked.json:
        print(json.dumps({"seconds": result["seconds"], "iterations": result["iterations"], "idle": idle / total, "others": others / total, "shares": shares,
                          "kernels_sync_wire": mainly}))
        return
    print(f"{result['iterations']} rounds in {result['seconds']:.1f} s; {idle / total:.0%} of the processors' time idle, "
          f"{others / total:.0%} other processes'; of the rest:")
    for name in ORDER:
        print(f"{TITLES.get(name, name):56}{shares[name]:7.1%}")
    print(f"{'kernels, sync and wire together (target: 60%)':56}{mainly:7.1%}")
    for name, count in rest.most_common(6):
        print(f"    {count / busy:6.1%} {name}")


if __name__ == "__main__":
    main()
