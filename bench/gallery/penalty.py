"""Yıldırım, *On the use of penalty MCMC for differential privacy*: Algorithms 1, 2 and 3."""

import pathlib
import random
import tempfile

import posteriors
import svg
from runs import HEADINGS, LEGEND, Score, table, write

RECORDS, EPSILONS, SEEDS, OWNERS = 40_000, [1, 3, 8], 16, 4
JOB = """name = "share"
algorithm = "{algorithm}"
parties = [{parties}]
[model]
kind = "bernoulli"
outcome = "y"
[columns]
y = {{ binary = true }}
[sampler]
chains = 4
draws = 3000
{sampler}
[privacy]
epsilon = {epsilon:?}
delta = 1e-6
"""
ROWS = [
    ("Algorithm 1: `penalty`, one owner", "penalty", 1, "warmup = 50"),
    ("Algorithm 2: `penalty`, four owners", "penalty", OWNERS, "warmup = 50"),
    ("Algorithm 3: `penalty-exp-family`, one owner", "penalty-exp-family", 1, "warmup = 50"),
    ("`noisy-statistics`, one owner", "noisy-statistics", 1, ""),
    ("`noisy-statistics`, four owners", "noisy-statistics", OWNERS, ""),
]
TEXT = """# The penalty algorithm

This page is for readers of the paper and for analysts who compare algorithms. Yıldırım, *On the use of penalty MCMC for differential
privacy*: Algorithm 1 is [`penalty`](../../reference/algorithms/penalty.md) with one owner, Algorithm 2 `penalty` with several, Algorithm 3
[`penalty-exp-family`](../../reference/algorithms/penalty-exp-family.md).

**The paper's claim.** A chain that accepts by noisy log likelihood ratios less half of their noise's variance has the posterior itself as its law
(Algorithms 1 and 2, any number of owners). For exponential families one noisy sufficient statistic a round suffices, without further access to the
data (Algorithm 3). Theorem 1 bounds the rounds; the paper has no experiments. With noise of a fixed size acceptance does not fall as records grow:
[examples/README.md](../../../examples/README.md#fixed-noise-more-iterations).

**Ours, at the same true epsilon.** A share (`bernoulli`), {records:,} made-up records in all, delta 1e-6, whose posterior is a beta distribution; {seeds} runs a cell. No run spends more
than its epsilon, by Gaussian differential privacy with an exact composition. Theorem 1's own bound allows far fewer rounds.

{table}
{legend}
![Error against epsilon](penalty.svg)

**What it shows.** Both penalty rows are of the posterior itself: their error is that of too few effective draws. From epsilon 3 on they end with the
3,000 draws a chain that the job asks for, and the budget is not used up. Several owners get fewer effective draws of the same budget each, as each adds
its own noise. Algorithm 3 asks for a statistic at every round. T answers of noise `s T^(1/2)` say what one answer of noise `s` does: it is dominated.

**A better algorithm.** `noisy-statistics` releases the statistic once and infers the posterior given it, with the width that the noise
makes. Take `penalty` where the model has no single release (mixtures, banana), and `hmc` where it has gradients and a posterior that is about normal: [which algorithm](README.md#which-algorithm).
"""


def make(program, out, _data):
    rng = random.Random("penalty")
    outcomes = [int(rng.random() < 0.3) for _ in range(RECORDS)]
    exact = {"p": posteriors.beta(sum(outcomes), RECORDS)}
    with tempfile.TemporaryDirectory() as folder:
        files = {n: [write(folder, f"{n}-{i}.csv", ["y"], [[y] for y in outcomes[i::n]]) for i in range(n)] for n in (1, OWNERS)}

        def task(algorithm, owners, sampler, epsilon, seed):
            parties = ", ".join(f'"owner-{i + 1}"' for i in range(owners))
            text = JOB.replace("{epsilon:?}", "{epsilon}").format(algorithm=algorithm, parties=parties, sampler=sampler, epsilon=float(epsilon))
            return text, files[owners], seed

        keys = [(row, epsilon) for row in ROWS for epsilon in EPSILONS]
        tasks = [task(*row[1:], epsilon, seed) for row, epsilon in keys for seed in range(SEEDS)]
        results = program.all(tasks)
    scores = {(key[0][0], key[1]): Score(results[SEEDS * i : SEEDS * (i + 1)], exact) for i, key in enumerate(keys)}
    rows = [[f"{epsilon}", name, *scores[name, epsilon].cells()] for epsilon in EPSILONS for name, *_ in ROWS]
    series = [
        (name.replace("`", "").split(":")[0], [(e, scores[name, e].error) for e in EPSILONS if scores[name, e].runs], "line") for name, *_ in ROWS
    ]
    svg.plot(out / "penalty.svg", "Error of the posterior mean against epsilon", [svg.Panel("a share, 40,000 records", "epsilon", "error, posterior sds", series, (True, True))])
    page = TEXT.format(records=RECORDS, seeds=SEEDS, table=table(["epsilon", "algorithm", *HEADINGS], rows), legend=LEGEND)
    pathlib.Path(out / "penalty.md").write_text(page, encoding="utf-8")
