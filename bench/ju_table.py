"""Ju, Awan, Gong & Rao (2022), Table 1 and Table 1 of its supplement: coverage of 90% intervals, theirs beside ours.

    python3 bench/ju_table.py [--replicates 500] [--threads 1] [--out FILE]

Runs the tests `table_1_at_*` and `table_at_*` of `inference/src/sampler/augmentation/tests/`, which are the paper's experiments on the sampler that jobs by
`algorithm = "augmentation"` run (Laplace noise as in the paper: jobs have discrete Gaussian noise). 500 replicates of all ten rows take about half an hour of one processor. A
cell is `ours (theirs) z`, where z is the difference in standard errors of a difference of two proportions, ours from the given number of replicates and theirs from 100. Exits with 1 if
a row is missing or a cell is more than 3.5 standard errors off.
"""

import argparse
import math
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG_LINEAR = {
    0.1: [1, 1, 1, 0.36, 1],
    0.3: [0.97, 1, 1, 0.59, 1],
    1.0: [0.94, 0.99, 0.97, 0.83, 0.98],
    3.0: [0.95, 0.91, 0.97, 0.89, 0.93],
    10.0: [0.92, 0.88, 0.94, 0.92, 0.9],
}
LINEAR = {
    0.1: [0.99, 0.60, 0.99],
    0.3: [1, 0.66, 0.94],
    1.0: [1, 0.84, 0.80],
    3.0: [1, 0.84, 0.75],
    10.0: [0.93, 0.87, 0.85],
}
OF_THE_PAPER = 100
# With correct programs, one of forty cells exceeds this with probability 0.02.
MOST_Z = 3.5
LINE = re.compile(r"(log-linear, Laplace \{ epsilon: ([\d.]+) \}|linear, epsilon ([\d.]+)), (\d+) replicates[^:]*: coverage \[([^\]]*)\], acceptance ([\d.]+)")


def measured(text):
    """Returns coverage, replicates and acceptance by table and epsilon."""
    found = {}
    for match in LINE.finditer(text):
        table = LOG_LINEAR if match[2] else LINEAR
        key = (table is LOG_LINEAR, float(match[2] or match[3]))
        found[key] = ([float(x) for x in match[5].split(",")], int(match[4]), float(match[6]))
    return found


def z(ours, replicates, theirs):
    """Returns the difference of two proportions in standard errors, which are computed from smoothed proportions, so that 1 has an error too."""
    smoothed = (ours * replicates + theirs * OF_THE_PAPER + 1) / (replicates + OF_THE_PAPER + 2)
    return (ours - theirs) / math.sqrt(smoothed * (1 - smoothed) * (1 / replicates + 1 / OF_THE_PAPER))


def tables(found):
    lines, worst = [], 0.0
    for log_linear, title, columns, paper in [
        (True, "Log-linear model, Table 1", ["p1", "p2", "p3", "p4", "p5"], LOG_LINEAR),
        (False, "Linear regression, Table 1 of the supplement", ["beta0", "beta1", "beta2"], LINEAR),
    ]:
        lines += [f"{title}: coverage, ours (theirs) z", "", "| epsilon | " + " | ".join(columns) + " | acceptance |"]
        lines += ["|---|" + "---|" * (len(columns) + 1)]
        for epsilon, theirs in paper.items():
            if (log_linear, epsilon) not in found:
                continue
            ours, replicates, acceptance = found[log_linear, epsilon]
            zs = [z(a, replicates, b) for a, b in zip(ours, theirs)]
            worst = max([worst, *map(abs, zs)])
            cells = [f"{a:.3f} ({b:g}) {e:+.1f}" for a, b, e in zip(ours, theirs, zs)]
            lines.append(f"| {epsilon:g} | " + " | ".join(cells) + f" | {acceptance:.3f} |")
        lines.append("")
    lines.append(f"Greatest |z|: {worst:.1f}, of {sum(len(ours) for ours, _, _ in found.values())} cells.")
    return "\n".join(lines), worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--program", help="the test binary of conclave-inference; cargo builds it where none is given")
    parser.add_argument("--log", help="output of an earlier run, from which only the tables are made")
    parser.add_argument("--out")
    given = parser.parse_args()
    if given.log:
        text = pathlib.Path(given.log).read_text()
    else:
        tests = ["--ignored", "--nocapture", "--test-threads=1", "table_1_at", "table_at_epsilon"]
        command = [given.program, *tests] if given.program else ["cargo", "test", "-p", "conclave-inference", "--lib", "--", *tests]
        environment = {**os.environ, "CONCLAVE_JU_REPLICATES": str(given.replicates), "RAYON_NUM_THREADS": str(given.threads)}
        text = subprocess.run(command, cwd=ROOT / "inference", env=environment, capture_output=True, text=True, check=False).stdout
    found = measured(text)
    text, worst = tables(found)
    print(text)
    if given.out:
        pathlib.Path(given.out).write_text(text + "\n")
    missing = [f"{'log-linear' if of is LOG_LINEAR else 'linear'} {epsilon:g}" for of in (LOG_LINEAR, LINEAR) for epsilon in of if (of is LOG_LINEAR, epsilon) not in found]
    if missing or worst > MOST_Z:
        sys.exit(f"not the tables: {', '.join(missing) or f'a cell is {worst:.1f} standard errors off'}")


if __name__ == "__main__":
    main()
