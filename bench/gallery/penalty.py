"""Yıldırım, *On the use of penalty MCMC for differential privacy*: Algorithms 1, 2 and 3."""

import pathlib
import random
import tempfile

import penalty_more
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
than its epsilon, by Gaussian differential privacy with an exact composition. [Theorem 1's own bound](#theorems) allows far fewer rounds.

{table}
{legend}
![Error against epsilon](penalty.svg)

**What it shows.** All rows of this table have the exact sd to 3%. The error of chains is about the inverse root of their effective draws: it is that of too few draws. From epsilon 3 on
Algorithm 1 ends with the 3,000 draws a chain that the job asks for, and half of its epsilon or more is not used. At epsilon 1 four owners get a fifth of the effective draws of one, as each adds
its own noise. Algorithm 3 asks for a statistic at every round. T answers of noise `s T^(1/2)` say what one answer of noise `s` does, and the one release of
`noisy-statistics` has a smaller error than the chains at each epsilon and number of owners.

**A better algorithm.** `noisy-statistics` releases the statistic once and infers the posterior given it, with the width that the noise
makes. Take `penalty` where the model has no single release (mixtures, banana), and `hmc` where it has gradients and a posterior that is about normal ([measured](dp-hmc.md)): [which algorithm](README.md#which-algorithm).

## Theorems

Rounds of four chains that a budget affords, delta 1e-6, from `conclave plan`; *ours* is what ledgers use:

{theorems}
The column of Theorem 1 follows its proof. Its printed eq. (3) lacks a factor of the root of log n, so at the paper's number of rounds epsilon grows with n; a test in
`inference/src/planner/theorem_1.rs` shows it. Corollary 1 has the same epsilon and delta for Algorithm 3.

Propositions 2 and 3 say that the chain keeps uniform and, if its accepting part is compact, geometric ergodicity of the chain without noise, as long as the noise's variance is bounded. In this service it is the same for
all moves of a kind. Both rest on the share kappa of the acceptance without noise that is left. By Lemma 1 a greatest probability of rejection r becomes at most 1 - kappa (1 - r):

{shares}
The paper's kappa is 1 - Phi(B/2) for a variance of at most B. Its proof takes B/2 for a bound on half of the sd, which is wrong for B below 1. The result holds all the same, and is far from sharp: the
least share is at a log ratio of 0, where it is 2 Phi(-sd/2) (a test in `inference/src/sampler/tests/penalty.rs`).

## Algorithms 1 and 3 at equal budgets

The same records, one owner, {equal_seeds} runs a cell. Algorithm 1 runs until its budget is used up; Algorithm 3 spreads it over the draws that the job asks for.

{equal}
At epsilon 1 both get the same number of effective draws, within what four runs show. At epsilon 3 Algorithm 1 gets 30% more than Algorithm 3 with 3,000 draws, and more than twice those with 500, in five and 27 times the rounds. So Algorithm 3
saves rounds.

## Samples

The paper's section 4 names a version on samples of the records, without an algorithm. With a sample of each record with probability q, the ratio of a step of .44 sds gets the further variance
(1 - q)/q .44². Half of all variance has to be taken off, and that of the sample is known only if it is released. The table holds the sd of all noise at 1.75: what the sample takes, the owner cannot add. *epsilon*: of the same
records and steps, by privacy losses. *posterior variance*: of a simulated chain on a standard normal posterior, 400,000 steps (right: 1).

{samples}
Samples cost more at every rate, for the same noise of the ratio. If only the owner's part is penalised, the variance of the draws is too large by 2% to 36%; if all of it is, it is right, but that variance has to be known. So
`penalty` has no `batch`. [`barker`](../../reference/algorithms/barker.md#samples) has, with an assumed variance that the run checks and the result states.
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
    page = TEXT.format(records=RECORDS, seeds=SEEDS, table=table(["epsilon", "algorithm", *HEADINGS], rows), legend=LEGEND, equal_seeds=penalty_more.EQUAL_SEEDS, **penalty_more.make(program, JOB, outcomes))
    pathlib.Path(out / "penalty.md").write_text(page, encoding="utf-8")
