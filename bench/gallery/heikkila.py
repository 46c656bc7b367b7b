"""Heikkilä, Jälkö, Dikmen & Honkela (2019): the mixture of their figures 2 and 3, tempered, and the true price of their setting."""

import math
import pathlib
import random
import statistics
import tempfile

import heikkila_figures
import svg
from heikkila_text import TEXT
from runs import Refused, rows_of, table, write

RECORDS, OWNERS, TEMPERED, BOUND, EPSILON = 1_000_000, 10, 100, 8.0, 0.18
# Numbers of runs of the paper's chain, and of chains that take ten times as long.
THEIRS, OURS = 20, 3
STEPS, WALK_SD = 5_000, 0.1
BIN = 0.02
NAMES = ["theta_1", "theta_2"]
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
start = {{ theta_1 = 0.0625, theta_2 = 0.0 }}
{sampler}
[privacy]
epsilon = {epsilon}
delta = 1e-6
{privacy}
"""
GUIDED = 'chains = 4\ndraws = 30000\nwarmup = 20\nproposal = { kind = "guided", radius = { theta_1 = 0.03, theta_2 = 0.06 } }'
WALK = f'chains = 1\ndraws = {STEPS}\nwarmup = 0\nproposal = {{ kind = "random_walk", radius = {{ theta_1 = 0.0125, theta_2 = 0.0125 }} }}'
# The radii come from a search, which also gives the variance of subsampling. The clip, which applies to every release, exceeds every record's part of a step.
SAMPLES = 'chains = 1\ndraws = 2000\nwarmup = 0\nlocate_share = 0.3\nbatch = 0.1\nproposal = { kind = "guided" }'
WITHOUT, THEIR_CHAIN = "their random walk without privacy, 5,000 steps", "`barker`, their random walk, 5,000 steps"
ROWS = [
    (THEIR_CHAIN, "barker", WALK, 0.5, "", THEIRS),
    ("`barker`, guided, four chains", "barker", GUIDED, EPSILON, "", OURS),
    ("`barker`, guided, one chain, samples of a tenth", "barker", SAMPLES, 2.0, "clip = 4e-4\nblocks = 5", OURS),
    ("`penalty`, guided, four chains", "penalty", GUIDED, EPSILON, "", OURS),
]


def records(seed=123):
    """Simulates their data: half of the records about theta_1 = 0, half about theta_1 + theta_2 = 1, variance 2."""
    rng = random.Random(seed)
    return [max(-BOUND, min(BOUND, rng.gauss(0.0 if rng.random() < 0.5 else 1.0, 2**0.5))) for _ in range(RECORDS)]


def density(values, width):
    """Returns the tempered log posterior without privacy, up to a constant, from a histogram of the records in bins of this width."""
    counts = {}
    for y in values:
        counts[round(y / width)] = counts.get(round(y / width), 0) + 1
    power = TEMPERED / len(values)
    weighted = [(width * place, power * count) for place, count in counts.items()]

    def log_density(first, second):
        both = first + second
        total = sum(weight * math.log(math.exp(-((y - first) ** 2) / 4) + math.exp(-((y - both) ** 2) / 4)) for y, weight in weighted)
        return total - first**2 / 20 - second**2 / 2

    return log_density


def exact(values):
    """Returns means and variances of the tempered posterior without privacy, on a grid."""
    log_density = density(values, BIN)
    grid = [(-2.5 + 0.05 * i, -4.0 + 0.08 * j) for i in range(101) for j in range(101)]
    logs = [log_density(*point) for point in grid]
    weights = [math.exp(value - max(logs)) for value in logs]
    mean = [sum(w * p[k] for w, p in zip(weights, grid)) / sum(weights) for k in (0, 1)]
    variance = [sum(w * (p[k] - mean[k]) ** 2 for w, p in zip(weights, grid)) / sum(weights) for k in (0, 1)]
    return mean, variance


def walked(values):
    """Runs their random walk with Barker's test without privacy; returns `[run][parameter][step]` and the acceptance rate."""
    log_density = density(values, 5 * BIN)
    runs, taken = [], 0
    for seed in range(THEIRS):
        rng = random.Random(f"walk {seed}")
        at = (8 * 0.0625, 0.0)
        here, run = log_density(*at), ([], [])
        for _ in range(STEPS):
            to = tuple(x + rng.gauss(0, WALK_SD) for x in at)
            there = log_density(*to)
            # Barker's test, as in private chains but without privacy.
            if rng.random() < 1 / (1 + math.exp(min(700.0, here - there))):
                at, here, taken = to, there, taken + 1
            for values_of, x in zip(run, at):
                values_of.append(x)
        runs.append(run)
    return runs, taken / (THEIRS * STEPS)


def cells(results, mean, variance):
    done = [result for result in results if not isinstance(result, Refused)]
    if not done:
        return [f"{len(results)}", str(results[0])] + ["–"] * 7
    rows = [rows_of(result, original=True) for result in done]
    errors = [math.sqrt(statistics.fmean((row[name]["mean"] - mean[k]) ** 2 for row in rows)) for k, name in enumerate(NAMES)]
    ratios = [statistics.fmean(row[name]["sd"] ** 2 for row in rows) / variance[k] for k, name in enumerate(NAMES)]
    return [
        f"{len(done)}",
        f"{spent(done):.3f}",
        f"{statistics.median(result['iterations'] for result in done):,.0f}",
        f"{statistics.median(result['acceptance_rate'] for result in done):.2f}",
        *(f"{error:.2f}" for error in errors),
        *(f"{ratio:.2f}" for ratio in ratios),
        f"{effective(done):,.1f}",
    ]


def spent(results):
    """Returns the largest epsilon spent by any owner in any run."""
    return max(party["epsilon_spent"] for result in results if not isinstance(result, Refused) for party in result["parties"])


def effective(results):
    """Returns the median over runs of the smaller effective sample size of the two parameters."""
    rows = [rows_of(result, original=True) for result in results if not isinstance(result, Refused)]
    return statistics.median(min(row[name].get("ess_bulk") or 0.0 for name in NAMES) for row in rows)


def cells_without(runs, taken, mean, variance):
    """Returns the cells of the chains without privacy."""
    errors = [math.sqrt(statistics.fmean((statistics.fmean(run[k]) - mean[k]) ** 2 for run in runs)) for k in (0, 1)]
    ratios = [statistics.fmean(statistics.pvariance(run[k]) for run in runs) / variance[k] for k in (0, 1)]
    return [f"{len(runs)}", "∞", f"{STEPS:,}", f"{taken:.2f}", *(f"{x:.2f}" for x in errors), *(f"{x:.2f}" for x in ratios), "–"]


def errors_against_steps(runs, mean, variance):
    """Returns the root mean square over runs of the mean of the first steps minus the exact one, both parameters in units of their sds."""
    places = [STEPS * k // 10 for k in range(1, 11)]
    sums = {steps: 0.0 for steps in places}
    for run in runs:
        for k in (0, 1):
            total = 0.0
            for step, value in enumerate(run[k], 1):
                total += value
                if step in sums:
                    sums[step] += (total / step - mean[k]) ** 2 / variance[k]
    return [(steps, math.sqrt(sums[steps] / (2 * len(runs)))) for steps in places]


def price(program, steps, adjacency):
    """Returns the price of their setting: 1,000 of 1e6 records, noise of variance 1 and a bound of 1000^(-1/2) on a record's part."""
    words = ["--subsampled", "--probability", 0.001, "--noise-multiplier", 31.62, "--releases", steps, "--delta", 1e-6, "--adjacency", adjacency]
    return program.account(*words)


def whole(program, mu):
    return program.account("--queries", f"{mu}x1", "--delta", 1e-6)["epsilon_gdp"]


def theorem(tight):
    """Returns epsilon of their setting by Theorem 2 and Corollary 2; with `tight`, the theorem's terms are without slack."""
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


def figure(program, path, errors):
    steps = [1000, 2000, 5000, 10_000, 20_000]
    prices = [price(program, count, "replace") for count in steps]
    costs = [
        ("samples, replace", [(count, one["epsilon_composed"]) for count, one in zip(steps, prices)], "line"),
        ("samples, add-remove", [(count, price(program, count, "add-remove")["epsilon_composed"]) for count in steps], "line"),
        ("all records, replace", [(count, whole(program, one["mu_unsampled"])) for count, one in zip(steps, prices)], "dashed"),
        ("the paper", [(5000, theorem(tight=False))], "points"),
    ]
    left = svg.Panel("price of their setting", "steps", "epsilon at delta 1e-6", costs, (True, True), (None, None, 0.001, 2.0))
    right = svg.Panel("error of the mean", "steps", "rms over runs, posterior sds", errors, limits=(0, None, 0, None))
    svg.plot(path, "Price of the paper's setting, and errors of means against steps", [left, right])


def clouds(path, runs, mean):
    """Plots about 2,000 draws of each of `runs`, `(title, [run][parameter][step])`."""
    limits = (mean[0] - 1.8, mean[0] + 1.8, mean[1] - 3.2, mean[1] + 3.2)

    def panel(title, these):
        points = [point for run in these for point in zip(*run)]
        thin = max(1, len(points) // 2000)
        return svg.Panel(title, *NAMES, [("draws", points[::thin], "cloud"), ("exact mean", [tuple(mean)], "points")], limits=limits)

    svg.plot(path, "Draws of the mixture's tempered posterior", [panel(title, these) for title, these in runs])


def chains(results):
    """Returns the draws as `[run][parameter][step]`, one chain each."""
    done = [result["draws"] for result in results if not isinstance(result, Refused)]
    return [[draws[name][chain] for name in NAMES] for draws in done for chain in range(len(draws[NAMES[0]]))]


def make(program, out, _data):
    values = records()
    mean, variance = exact(values)
    with tempfile.TemporaryDirectory() as folder:
        files = [write(folder, f"owner-{i + 1}.csv", ["y"], ([f"{y:.4f}"] for y in values[i::OWNERS])) for i in range(OWNERS)]
        parties = ", ".join(f'"owner-{i + 1}"' for i in range(OWNERS))
        results = {}
        for name, algorithm, sampler, epsilon, privacy, seeds in ROWS:
            job = JOB.format(algorithm=algorithm, parties=parties, sampler=sampler, epsilon=epsilon, privacy=privacy)
            results[name] = program.all([(job, files, seed, True, NAMES) for seed in range(seeds)])
    without, taken = walked(values)
    replace, removal = price(program, 5000, "replace"), price(program, 5000, "add-remove")
    prices = [
        ["claimed, by Theorem 2 and their amplification", f"{theorem(tight=False):.3f}"],
        ["the same theorem with its terms tightened", f"{theorem(tight=True):.3f}"],
        ["by privacy losses, a record replaced", f"{replace['epsilon_composed']:.4f}"],
        ["by privacy losses, a record added or removed", f"{removal['epsilon_composed']:.4f}"],
        ["all records at every step, the same noise of the ratio, a record replaced", f"{whole(program, replace['mu_unsampled']):.5f}"],
    ]
    theirs = chains(results[THEIR_CHAIN])
    errors = [(name, errors_against_steps(runs, mean, variance), "line") for name, runs in (("without privacy", without), (f"barker, epsilon {spent(results[THEIR_CHAIN]):.2f}", theirs))]
    figure(program, out / "heikkila.svg", errors)
    clouds(out / "heikkila-draws.svg", [("without privacy", without), ("barker, private", theirs), ("penalty, private", chains(results[ROWS[-1][0]]))], mean)
    headings = ["algorithm", "runs", "epsilon spent", "rounds", "acceptance", "error of mean 1", "error of mean 2", "variance ratio 1", "variance ratio 2", "ESS"]
    rows = [[WITHOUT, *cells_without(without, taken, mean, variance)], *([name, *cells(results[name], mean, variance)] for name, *_ in ROWS)]
    page = TEXT.format(
        ratio=f"{effective(results[ROWS[1][0]]) / effective(results[THEIR_CHAIN]):,.0f}",
        price=f"{spent(results[ROWS[1][0]]) / spent(results[THEIR_CHAIN]):.1f}",
        means=", ".join(f"{value:.4f}" for value in mean),
        variances=", ".join(f"{value:.4f}" for value in variance),
        prices=table(["5,000 steps, delta 1e-6", "epsilon"], prices),
        table=table(headings, rows),
        **heikkila_figures.words(program, out),
    )
    pathlib.Path(out / "heikkila.md").write_text(page, encoding="utf-8")
