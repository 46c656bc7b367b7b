"""Ju, Awan, Gong & Rao (2022): Table 1, the linear one, and a job by their algorithm."""

import math
import pathlib
import random
import re
import statistics
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import laplace_price
import posteriors
import svg
from ju_text import TEXT
from runs import HEADINGS, LEGEND, Score, Skipped, table, write

COVERAGE, FIGURES, LOCAL = "ju-table.txt", "ju-figures.txt", "Share of accepted records in a logistic regression"
RECORDS, EPSILONS, SEEDS = 2_000, [1, 3, 10], 12
JOB = """name = "line"
algorithm = "{algorithm}"
parties = ["a"]
[model]
kind = "linear"
outcome = "y"
predictors = ["u", "v"]
sd = 0.3
[columns]
y = {{ min = -1, max = 1 }}
u = {{ min = -1, max = 1 }}
v = {{ min = -1, max = 1 }}
[sampler]
draws = 2000
{sampler}
[privacy]
epsilon = {epsilon}
delta = 1e-6
"""


def cells(text):
    """Returns `(ours, theirs, z)` for every cell of the coverage tables."""
    found = re.findall(r"([\d.]+) \(([\d.]+)\) ([+-][\d.]+)", text)
    return [tuple(float(x) for x in cell) for cell in found]


def make(program, out, _data):
    if not (out / COVERAGE).exists():
        raise Skipped(f"docs/explanation/gallery/{COVERAGE} is not there: bench/ju_table.py --out docs/explanation/gallery/{COVERAGE} makes it")
    if not (out / FIGURES).exists():
        raise Skipped(f"docs/explanation/gallery/{FIGURES} is not there: bench/ju_figures.py makes it")
    coverage = (out / COVERAGE).read_text()
    shares = cells(coverage)
    zs = [z for *_, z in shares]
    verdict = (
        f"Of {len(zs)} cells the differences have a root mean square of {math.sqrt(statistics.fmean(z * z for z in zs)):.2f} standard errors and the greatest is "
        f"{max(map(abs, zs)):.1f}: {'within Monte Carlo error' if max(map(abs, zs)) < 3.3 else 'beyond Monte Carlo error in some'}.\n"
    )
    diagonal = [(0.5, 0.5), (1, 1)]
    bars = [("even", diagonal, "dashed"), ("cells", [(theirs, ours) for ours, theirs, _ in shares], "points")]
    svg.plot(out / "ju.svg", "Coverage of 90% intervals", [svg.Panel("coverage of 90% intervals", "theirs, 100 replicates", "ours", bars)])
    rng = random.Random("ju")
    design, outcomes = [], []
    for _ in range(RECORDS):
        u, v = (max(-1.0, min(1.0, rng.gauss(0, 0.35))) for _ in range(2))
        design.append([1.0, u, v])
        outcomes.append(max(-1.0, min(1.0, 0.1 + 0.3 * u - 0.2 * v + rng.gauss(0, 0.3))))
    means, sds = posteriors.linear(design, outcomes, 0.3)
    exact = dict(zip(["intercept", "u", "v"], zip(means, sds)))
    algorithms = [("augmentation", "warmup = 1000"), ("noisy-statistics", ""), ("penalty", "warmup = 50")]
    keys = [(epsilon, *algorithm) for epsilon in EPSILONS for algorithm in algorithms]
    with tempfile.TemporaryDirectory() as folder:
        file = write(folder, "a.csv", ["y", "u", "v"], [[f"{y:.6f}", f"{x[1]:.6f}", f"{x[2]:.6f}"] for y, x in zip(outcomes, design)])
        tasks = [(JOB.format(algorithm=name, sampler=sampler, epsilon=float(epsilon)), [file], seed) for epsilon, name, sampler in keys for seed in range(SEEDS)]
        results = program.all(tasks)
    figures, _, local = (out / FIGURES).read_text().partition(LOCAL)
    releases = re.search(r"over (\d+) releases", figures)[1]
    rows = [[f"{e}", f"`{name}`", *Score(results[SEEDS * i : SEEDS * (i + 1)], exact).cells()] for i, (e, name, _) in enumerate(keys)]
    page = TEXT.format(
        coverage=coverage, verdict=verdict, records=RECORDS, seeds=SEEDS, table=table(["epsilon", "algorithm", *HEADINGS], rows), legend=LEGEND,
        figures=figures.strip(), releases=releases, local=local.partition("\n\n")[2],
        pure=laplace_price.rows(laplace_price.from_epsilon), exact=laplace_price.rows(laplace_price.exact),
    )
    pathlib.Path(out / "ju.md").write_text(page, encoding="utf-8")
