"""Ju, Awan, Gong & Rao (2022): Table 1, the linear one, and a job by their algorithm."""

import math
import pathlib
import random
import re
import statistics
import tempfile

import posteriors
import svg
from runs import HEADINGS, LEGEND, Score, Skipped, table, write

COVERAGE = "ju-table.txt"
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
TEXT = """# Data augmentation

This page is for readers of the paper and for analysts who compare algorithms. Ju, Awan, Gong & Rao, *Data Augmentation MCMC for
Bayesian Inference from Privatized Data* (2022): [`algorithm = "augmentation"`](../../reference/algorithms/augmentation.md).

**The paper's claim.** Given one noisy release, a Gibbs sampler imputes the records: each is proposed from the model and accepted by the density of the
noise. Its law is the posterior given the release, for any mechanism that is a sum over records. A record is accepted with probability at least
`e^-epsilon`. Their tables are of the coverage of 90% intervals of the true parameters, 100 records and 100 replicates. Some fall short of .9, as the
prior then says more than the release.

**Ours, at the same true epsilon.** Their experiments, with their Laplace noise, on the sampler that jobs run, 500 replicates a row
(`bench/ju_table.py`). In brackets is their own figure, then the difference in its standard errors.

{coverage}
{verdict}
![Coverage, theirs and ours](ju.svg)

Where the paper errs:

- The sensitivity of the linear statistic is 9.4 for two predictors and not 13, so its noise is 39% larger than necessary (reproduced with 13).
- The bound `e^-epsilon` on the acceptance is `2/(1 + e^epsilon)` on average over releases, and all runs above lie beyond it.
- The authors' program for the log-linear model reads a wrong column where a record is replaced, and counts a cell twice where it stays. Table 1 does not
  show it, the acceptance does (at epsilon 10, .145 against .213).

Jobs have discrete Gaussian noise instead of Laplace noise.

**A better algorithm.** A linear regression of two predictors and known error. {records:,} made-up records of one owner, {seeds} runs a cell, against
the posterior without privacy:

{table}
{legend}
Both infer the posterior given one release, so both are as wide as the noise makes them. `augmentation` models each record (predictors too) and the effect of
clamping, and its time grows with the number of records. `noisy-statistics` treats sums of many records as normal. Take `augmentation` for
`naive_bayes`, for few records, and where values are clamped; else `noisy-statistics`: [which algorithm](README.md#which-algorithm).
"""


def cells(text):
    """Returns `(ours, theirs, z)` for every cell of the coverage tables."""
    found = re.findall(r"([\d.]+) \(([\d.]+)\) ([+-][\d.]+)", text)
    return [tuple(float(x) for x in cell) for cell in found]


def make(program, out, _data):
    if not (out / COVERAGE).exists():
        raise Skipped(f"docs/explanation/gallery/{COVERAGE} is not there: bench/ju_table.py --out docs/explanation/gallery/{COVERAGE} makes it")
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
    rows = [[f"{e}", f"`{name}`", *Score(results[SEEDS * i : SEEDS * (i + 1)], exact).cells()] for i, (e, name, _) in enumerate(keys)]
    page = TEXT.format(
        coverage=coverage, verdict=verdict, records=RECORDS, seeds=SEEDS, table=table(["epsilon", "algorithm", *HEADINGS], rows), legend=LEGEND
    )
    pathlib.Path(out / "ju.md").write_text(page, encoding="utf-8")
