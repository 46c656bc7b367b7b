"""Measures the numbers of records and the epsilon that an answer needs: the table of README.md.

    python3 bench/how_much.py --conclave target/release/conclave [--seeds 20] [--out FILE]

Three owners hold simulated records: a binary outcome, an intercept and three predictors (a binary one and two numbers that fill the middle half
of their bounds, with correlation 0.3). Jobs have delta 1e-6 and the defaults, and are run by `conclave rehearse` with the sampler, kernels,
noise and accounting of a real run, on fresh records for every seed. A cell states the width of the intervals relative to those without privacy
(the median over runs and coefficients of sd / sd_data), and the number of runs with an answer if not all had one. Below are the draws kept by a
chain of ratios (`penalty`) at the same budget.
"""

import argparse
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

PARTIES = 3
RECORDS = [300, 1_000, 3_000, 10_000, 30_000, 100_000]
EPSILON = [0.3, 1, 3, 8]
JOB = """name = "how much"
algorithm = "{algorithm}"
parties = ["a", "b", "c"]
[model]
kind = "logistic"
outcome = "y"
predictors = ["treated", "age", "weight"]
[columns]
y = {{ binary = true }}
treated = {{ binary = true }}
age = {{ min = 0, max = 100 }}
weight = {{ min = 0, max = 200 }}
[prior]
default = "normal(0, 2.5)"
[sampler]
draws = 2000
[privacy]
epsilon = {epsilon}
delta = 1e-6
"""


def write(path, records, rng):
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["y", "treated", "age", "weight"])
        for _ in range(records):
            treated, age = rng.random() < 0.5, rng.gauss(0, 0.29)
            weight = 0.3 * age + math.sqrt(1 - 0.09) * rng.gauss(0, 0.29)
            age, weight = (max(-1.0, min(1.0, x)) for x in (age, weight))
            eta = -0.5 + 0.6 * treated + 0.8 * age - 0.5 * weight
            y = rng.random() < 1 / (1 + math.exp(-eta))
            rows.writerow([int(y), int(treated), f"{50 + 50 * age:.3f}", f"{100 + 100 * weight:.3f}"])


def run(program, algorithm, records, epsilon, seed):
    rng = random.Random(f"{records} {seed}")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "job.toml").write_text(JOB.format(algorithm=algorithm, epsilon=epsilon))
        command = [program, "rehearse", folder / "job.toml", "--json", "--noise-seed", str(seed)]
        for party in "abc":
            write(folder / f"{party}.csv", records, rng)
            command += ["--data", folder / f"{party}.csv"]
        ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return None
    result = json.loads(ran.stdout)
    # The figures of an answer that is not adequate stand apart.
    return result | result.get("inadequate", {})


def released_once(runs):
    if all(result is None for result in runs):
        return "refused"
    adequate = [result for result in runs if result and result["adequacy"]["adequate"]]
    if not adequate:
        return f"none of {len(runs)}"
    factors = [row["sd"] / row["sd_data"] for result in adequate for row in result["posterior"] if row.get("sd_data")]
    share = "" if len(adequate) == len(runs) else f" ({len(adequate)} of {len(runs)})"
    return f"{statistics.median(factors):.2f}{share}"


def chain(runs):
    if all(result is None for result in runs):
        return "no draw"
    ess = [min(row["ess_bulk"] or 0 for row in result["posterior"]) for result in runs if result]
    return f"{statistics.median(ess):.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conclave", required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--chains", type=int, default=3, help="runs by penalty per cell")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    lines = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for algorithm, seeds, cell in [("auto", arguments.seeds, released_once), ("penalty", arguments.chains, chain)]:
            lines += [f"| {algorithm}: records of each of three owners | " + " | ".join(f"epsilon {e}" for e in EPSILON) + " |", "|---|" + "---|" * len(EPSILON)]
            for records in RECORDS:
                cells = []
                for epsilon in EPSILON:
                    of = lambda seed, n=records, e=epsilon: run(arguments.conclave, algorithm, n, e, seed)
                    cells.append(cell(list(pool.map(of, range(1, seeds + 1)))))
                lines.append(f"| {records:,} | " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
            lines.append("")
    text = "\n".join(lines)
    print(text)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)


if __name__ == "__main__":
    main()
