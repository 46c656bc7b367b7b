#!/usr/bin/env python3
"""Compares the kernels of a pass with numpy and with reading the same memory, alternating in one run.

    bench/kernel.py [--rounds 15] [--records 1000000] [--folder target/bench]

Creates a virtual environment with numpy in the folder, builds the example `kernel_timings` in release mode, and alternates numpy's kernel (two
matrix-vector products, logaddexp, clip) with one round of ours, all on one thread unless two are named. Prints medians in
nanoseconds per record, the ratios with their targets, and the same as one line of JSON.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")}
WIDTH = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "bench")
    parser.add_argument("--built", action="store_true", help="skip building and installing")
    args = parser.parse_args()
    args.folder = args.folder.resolve()
    python = args.folder / "venv" / "bin" / "python"
    if Path(sys.prefix) != args.folder / "venv":
        if not python.exists():
            venv.create(args.folder / "venv", with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy"], check=True)
        if not args.built:
            build = ["cargo", "build", "--release", "--quiet", "-p", "conclave-common", "--example", "kernel_timings"]
            subprocess.run(build, check=True, cwd=ROOT)
        os.execve(python, [str(python), *sys.argv], os.environ | ONE_THREAD)
    report(measure(args.rounds, args.records), args.records)


def measure(rounds, records):
    """Returns the times in nanoseconds per record, by name."""
    import numpy as np

    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (records, WIDTH))
    y = (rng.uniform(size=records) < 0.5).astype(float)
    theta = 0.1 * np.arange(WIDTH) - 0.2
    moved = theta.copy()
    moved[1] += 0.0015

    def kernel():
        eta, eta_to = x @ theta, x @ moved
        ratio = y * (eta_to - eta) - (np.logaddexp(0.0, eta_to) - np.logaddexp(0.0, eta))
        return np.clip(ratio, -16.0, 16.0).sum()

    timings = ROOT / "target" / "release" / "examples" / "kernel_timings"
    ours = subprocess.Popen([timings, str(records)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    times = {}
    for number in range(rounds + 2):
        began = time.perf_counter()
        kernel()
        this = {"logistic: numpy": (time.perf_counter() - began) * 1e9 / records}
        ours.stdin.write("\n")
        ours.stdin.flush()
        this |= json.loads(ours.stdout.readline())
        # The first rounds are a warm-up.
        if number >= 2:
            for name, value in this.items():
                times.setdefault(name, []).append(value)
    ours.stdin.close()
    ours.wait()
    return {name: statistics.median(values) for name, values in times.items()}


def report(medians, records):
    read = {
        model: min(medians[f"{model}: read by column"], medians[f"{model}: read by tile"])
        for model in ("logistic", "linear", "gaussian_mean")
    }
    ratios = {"logistic, of numpy (at most 0.10)": medians["logistic: 1 chain"] / medians["logistic: numpy"]}
    for model in ("gaussian_mean", "linear"):
        ratios[f"{model}, of reading once (at most 1.5)"] = medians[f"{model}: 1 chain"] / read[model]
    for model in ("logistic", "linear", "gaussian_mean"):
        one, many = medians[f"{model}: 1 chain"], medians[f"{model}: 16 chains"]
        if model == "logistic":
            ratios["logistic, 2 threads, of one (at least 1.8)"] = one / medians["logistic: 1 chain, 2 threads"]
            ratios["logistic, 2 threads, 16 chains, of one (at least 1.8)"] = many / medians["logistic: 16 chains, 2 threads"]
        ratios[f"{model}, 16 chains, of one, per chain (at most 0.4)"] = many / 16 / one
    print(f"{records} records, medians, nanoseconds per record (of all chains together)")
    for name, value in medians.items():
        print(f"  {name:45} {value:9.3f}")
    print("ratios")
    for name, value in ratios.items():
        print(f"  {name:60} {value:6.3f}")
    print(json.dumps({"records": records, "ns_per_record": medians, "ratios": ratios}))


if __name__ == "__main__":
    main()
