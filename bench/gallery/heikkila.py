"""Heikkilä, Jälkö, Dikmen & Honkela (2019): the mixture of their figures 2 and 3, tempered, and the true price of their setting."""

import math
import pathlib
import random
import statistics
import tempfile

import svg
from runs import Refused, rows_of, table, write

RECORDS, OWNERS, TEMPERED, BOUND, SEEDS, EPSILON = 1_000_000, 10, 100, 8.0, 3, 0.18
BIN = 0.02
# Priors, start and radii are in units of the column's half width, 8.
JOB = """name = "mixture"
algorithm = "{algorithm}"
parties = [{parties}]
[model]
kind = "gaussian_mixture"
outcome = "y"
sd = 1.4142135623730951
power = 0.0001
[columns]
y = {{ min = -8, max = 8 }}
[prior]
theta_1 = "normal(0, 0.3952847075210474)"
theta_2 = "normal(0, 0.125)"
[sampler]
chains = 1
draws = {draws}
warmup = 50
start = {{ theta_1 = 0.0625, theta_2 = 0.0 }}
proposal = {proposal}
[privacy]
epsilon = {epsilon}
delta = 1e-6
"""
GUIDED = '{ kind = "guided", radius = { theta_1 = 0.06, theta_2 = 0.06 } }'
WALK = '{ kind = "random_walk", radius = { theta_1 = 0.0125, theta_2 = 0.0125 } }'
ROWS = [
    ("`barker`, their random walk, 5,000 steps", "barker", WALK, 5_000, 0.5),
    ("`barker`, guided", "barker", GUIDED, 30_000, EPSILON),
    ("`penalty`, guided", "penalty", GUIDED, 30_000, EPSILON),
]


TEXT = """# Barker's test

Heikkilä, Jälkö, Dikmen & Honkela, *Differentially Private Markov Chain Monte Carlo* (2019): [`barker`](../algorithms/barker.md).

**The paper's claim.** Barker's test decides by a log ratio with logistic noise; most of that noise can be the normal noise of privacy. With samples of 1,000 of 1e6 records, a likelihood tempered to the weight of
N0 = 100 and a random walk of variance .01, 5,000 steps cost epsilon .499 at delta 1e-6 by Theorem 2 and Corollary 2, and their draws look like those without privacy (figures 2 and 3, twenty runs).

**The true price of their setting.** Each record's part of the ratio is held to 1000^(-1/2) of a noise of variance at least 1 (C = 2, less a variance of the sample of at most 1).

{prices}
The first figure is the paper's, the second is its theorem without the slack in its terms; the others are those of `conclave account --subsampled --probability .001 --noise-multiplier 31.62 --releases 5000 --delta 1e-6`
(`epsilon_composed`; a ledger, which has to charge ahead, counts slightly more), with `--adjacency add-remove` for the fourth, and of `conclave account --queries` for the fifth. The claim is some 35 times too large, and the last line shows that the samples buy none of what is left: for the same noise of the ratio all
records cost as little. What makes it cheap is the tempering: with the weight of 100 records a record moves the ratio by next to nothing.

**Ours, at the same true epsilon or less.** Their mixture: 1e6 made-up records, ten owners, no samples, the likelihood to the power 1e-4 (N0 = 100), delta 1e-6, C = 2, one chain, {seeds} runs a row. Every owner adds a tenth of the
noise's variance, so that each pays ten times the square of what one owner of all records would. The posterior without privacy, by a grid: means ({means}), variances ({variances}).

{table}
*epsilon spent*: by any owner, in any run. *error*: root mean square over runs of the posterior mean less the exact one, in units of theta. *variance ratio*: the mean of the runs' variances over the exact one. *ESS*: the lesser bulk effective
sample size of the two parameters, median of the runs.

![Price and means](heikkila.svg)

**What it shows.** Both algorithms find means and variances to within the error that their few effective draws leave. The posterior is a long, flat and narrow ridge, for (theta_1, theta_2) and (theta_1 + theta_2, -theta_2) are one mixture,
and a chain needs many steps from one end of it to the other: with steps of .1, as the paper's, it had 2 effective draws (median of the runs) of 5,000, so that a single run of it tells neither mean nor variance well. The paper's figure 3 averages twenty.
The radius was chosen after trials of three. Guided steps of .48 have more effective draws, of nearly the same number of steps for `barker`, at a higher price.

**The better algorithm beside it.** `penalty`, on the same questions to the owners at the same price: its law is the posterior itself, where that of `barker` at C = 2 has a variance .6% too great for short steps. At these
wide steps it also ended with more effective draws of the same budget. Take `barker` to reproduce the paper. Both are within epsilon .18 for each of ten owners, under the .499
that the paper claims for one: [which algorithm](README.md).
"""


def records(seed=123):
    """Their data: half of the records about theta_1 = 0, half about theta_1 + theta_2 = 1, variance 2."""
    rng = random.Random(seed)
    return [max(-BOUND, min(BOUND, rng.gauss(0.0 if rng.random() < 0.5 else 1.0, 2**0.5))) for _ in range(RECORDS)]


def exact(values):
    """Means and variances of the tempered posterior without privacy, and its weights on a grid, by a histogram of the records."""
    counts = {}
    for y in values:
        counts[round(y / BIN)] = counts.get(round(y / BIN), 0) + 1
    power = TEMPERED / len(values)
    grid = [(-2.5 + 0.05 * i, -4.0 + 0.08 * j) for i in range(101) for j in range(101)]

    def log_density(first, second):
        total = 0.0
        for place, count in counts.items():
            y = BIN * place
            total += count * math.log(math.exp(-((y - first) ** 2) / 4) + math.exp(-((y - first - second) ** 2) / 4))
        return power * total - first**2 / 20 - second**2 / 2

    logs = [log_density(*point) for point in grid]
    weights = [math.exp(value - max(logs)) for value in logs]
    mean = [sum(w * p[k] for w, p in zip(weights, grid)) / sum(weights) for k in (0, 1)]
    variance = [sum(w * (p[k] - mean[k]) ** 2 for w, p in zip(weights, grid)) / sum(weights) for k in (0, 1)]
    return mean, variance


def cells(results, mean, variance):
    done = [result for result in results if not isinstance(result, Refused)]
    if not done:
        return [str(results[0])] + ["–"] * 7
    rows = [rows_of(result, original=True) for result in done]
    names = ["theta_1", "theta_2"]
    errors = [
        math.sqrt(statistics.fmean((row[name]["mean"] - mean[k]) ** 2 for row in rows)) for k, name in enumerate(names)
    ]
    ratios = [statistics.fmean(row[name]["sd"] ** 2 for row in rows) / variance[k] for k, name in enumerate(names)]
    ess = statistics.median(min(row[name].get("ess_bulk") or 0.0 for name in names) for row in rows)
    spent = max(party["epsilon_spent"] for result in done for party in result["parties"])
    return [
        f"{spent:.3f}",
        f"{statistics.median(result['iterations'] for result in done):,.0f}",
        f"{statistics.median(result['acceptance_rate'] for result in done):.2f}",
        *(f"{error:.2f}" for error in errors),
        *(f"{ratio:.2f}" for ratio in ratios),
        f"{ess:,.0f}",
    ]


def price(program, steps, adjacency):
    """Their setting: 1,000 of 1e6 records, noise of variance 1 against a bound of 1000^(-1/2) on a record's part."""
    words = ["--subsampled", "--probability", 0.001, "--noise-multiplier", 31.62, "--releases", steps, "--delta", 1e-6, "--adjacency", adjacency]
    return program.account(*words)


def whole(program, mu):
    return program.account("--queries", f"{mu}x1", "--delta", 1e-6)["epsilon_gdp"]


def theorem(tight):
    """Epsilon of their setting by Theorem 2 and Corollary 2; `tight`: the theorem's terms without their slack."""
    size, share, steps, delta = 1000, 0.001, 5000, 1e-6
    move = 5 / size

    def one(order):
        if tight:
            return 0.5 * move + math.log((1 + move) / (1 + move - order * move)) / (2 * (order - 1)) + 2 * order / size / (1 - order * move)
        return move / 2 + math.log(2 / (1 - order * move)) / (2 * (order - 1)) + 2 * order / (size - 5 * order)

    def composed(order):
        choose = lambda j: math.lgamma(order + 1) - math.lgamma(j + 1) - math.lgamma(order - j + 1)
        second = share**2 * math.comb(order, 2) * min(4 * math.expm1(one(2)), 2 * math.exp(one(2)))
        rest = sum(2 * math.exp(min(700.0, j * math.log(share) + choose(j) + (j - 1) * one(j))) for j in range(3, order + 1))
        return steps * math.log1p(second + rest) / (order - 1) + math.log(1 / delta) / (order - 1)

    return min(composed(order) for order in range(3, 180))


def figure(program, path, results, mean):
    steps = [1000, 2000, 5000, 10_000, 20_000]
    told = [price(program, count, "replace") for count in steps]
    costs = [
        ("samples, replace", [(count, one["epsilon_composed"]) for count, one in zip(steps, told)], "line"),
        ("samples, add-remove", [(count, price(program, count, "add-remove")["epsilon_composed"]) for count in steps], "line"),
        ("all records, replace", [(count, whole(program, one["mu_unsampled"])) for count, one in zip(steps, told)], "dashed"),
        ("the paper", [(5000, theorem(tight=False))], "points"),
    ]
    found = lambda name: [
        tuple(rows_of(result, original=True)[of]["mean"] for of in ("theta_1", "theta_2")) for result in results[name] if not isinstance(result, Refused)
    ]
    means = [("exact", [tuple(mean)], "points"), *((name.replace("`", ""), found(name), "points") for name, *_ in ROWS[1:])]
    limits = (mean[0] - 0.6, mean[0] + 0.6, mean[1] - 1.0, mean[1] + 1.0)
    left = svg.Panel("price of their setting", "steps", "epsilon at delta 1e-6", costs, (True, True), (None, None, 0.001, 2.0))
    svg.plot(path, "Price of the paper's setting, and posterior means of runs", [left, svg.Panel("means of runs", "theta_1", "theta_2", means, limits=limits)])


def make(program, out, _data):
    values = records()
    mean, variance = exact(values)
    with tempfile.TemporaryDirectory() as folder:
        files = [write(folder, f"owner-{i + 1}.csv", ["y"], ([f"{y:.4f}"] for y in values[i::OWNERS])) for i in range(OWNERS)]
        parties = ", ".join(f'"owner-{i + 1}"' for i in range(OWNERS))
        results = {}
        for name, algorithm, proposal, draws, epsilon in ROWS:
            job = JOB.format(algorithm=algorithm, parties=parties, draws=draws, proposal=proposal, epsilon=epsilon)
            results[name] = program.all([(job, files, seed) for seed in range(SEEDS)])
    replace, removal = price(program, 5000, "replace"), price(program, 5000, "add-remove")
    prices = [
        ["claimed, by Theorem 2 and their amplification", f"{theorem(tight=False):.3f}"],
        ["the same theorem with its terms tightened", f"{theorem(tight=True):.3f}"],
        ["by privacy losses, a record replaced", f"{replace['epsilon_composed']:.4f}"],
        ["by privacy losses, a record added or removed", f"{removal['epsilon_composed']:.4f}"],
        ["all records at every step, the same noise of the ratio, a record replaced", f"{whole(program, replace['mu_unsampled']):.5f}"],
    ]
    figure(program, out / "heikkila.svg", results, mean)
    headings = ["algorithm", "epsilon spent", "rounds", "acceptance", "error of mean 1", "error of mean 2", "variance ratio 1", "variance ratio 2", "ESS"]
    told = TEXT.format(
        seeds=SEEDS,
        means=", ".join(f"{value:.4f}" for value in mean),
        variances=", ".join(f"{value:.4f}" for value in variance),
        prices=table(["5,000 steps, delta 1e-6", "epsilon"], prices),
        table=table(headings, [[name, *cells(results[name], mean, variance)] for name, *_ in ROWS]),
    )
    pathlib.Path(out / "heikkila.md").write_text(told, encoding="utf-8")
