"""Wang, Fienberg & Smola (2015): draws at pure composition, the efficiency of one draw, output perturbation, two normals and samples of N^(1/2)."""

import math
import random
import re
import statistics
import tempfile

import wang
from runs import Refused, table, write

DELTA = 1e-6
# Figure 1(a): the paper's text has no sizes.
NORMALS, APART, HALF = 5_000, 0.525, 4.0
TWO = {"u": (-HALF, HALF), "v": (-HALF, HALF)}
# Ridges of output perturbation, of which the best on held-out records is taken.
RIDGES = [0.16, 1, 10, 30, 100, 300, 1000, 3000, 10_000]
SETS, DRAWS, SHARE_RECORDS, SHARE = 50, 20, 2_000, 0.3
ONE_DRAW = """name = "one draw"
algorithm = "ops"
parties = ["a"]
[model]
kind = "bernoulli"
outcome = "y"
[columns]
y = {{ binary = true }}
[sampler]
draws = {draws}
[privacy]
epsilon = 40.0
delta = 1e-6
"""


def two_normals():
    """Simulates records of two classes, normal about (.525, 0) and (-.525, 0) with sd 1: the best rule is right for .70 of them."""
    rng, rows = random.Random("two normals"), []
    for _ in range(NORMALS):
        y = float(rng.random() < 0.5)
        clip = lambda x: max(-HALF, min(HALF, x))
        rows.append({"y": y, "u": clip(rng.gauss(APART if y else -APART, 1)), "v": clip(rng.gauss(0, 1))})
    return rows


class Prices:
    """The prices of a search and of a draw, by the ledger and with the draw at its pure epsilon."""

    def __init__(self, program, epsilon, share=0.3):
        self.program, self.epsilon = program, epsilon
        self.mu = program.account("--epsilon", epsilon, "--delta", DELTA)["mu_budget"]
        self.search_mu = self.mu * math.sqrt(share)
        self.search = self.of_mu(self.search_mu)

    def of_mu(self, mu):
        return self.program.account("--queries", f"{mu!r}x1", "--delta", DELTA)["epsilon_gdp"]

    def draw(self, spread):
        """Returns `mu` and the ledger's epsilon of a draw of this range alone."""
        found = self.program.account("--ops", spread, "--delta", DELTA)
        return found["mu"], found["epsilon_gdp"]

    def together(self, spread):
        """Returns the ledger's epsilon of search and draw."""
        return self.of_mu(math.hypot(self.search_mu, self.draw(spread)[0]))

    def budget_of_pure(self):
        """Returns the ledger's epsilon and the search's share of a job whose search is the same and whose draw has all of the pure epsilon that is left."""
        mu = math.hypot(self.search_mu, self.draw(self.epsilon - self.search)[0])
        return self.of_mu(mu), self.search_mu**2 / mu**2


def spread(result):
    """Returns the range of a draw that was made or refused."""
    if isinstance(result, Refused):
        found = re.search(r"range of ([0-9.]+)", str(result))
        return float(found.group(1)) if found else None
    return result["ops"]["range"]


def at(program, task, epsilon, power, share):
    """Runs one draw; returns its object or the refusal."""
    sampler = f'draws = 1\nlocate = "gradients"\nlocate_share = {share!r}'
    return program.all([(*task.job("ops", sampler, epsilon, power), 0)])[0]


def untempered(program, tasks):
    """Returns the table of the prices of untempered draws."""
    rows = []
    for task in tasks:
        for epsilon in wang.EPSILONS:
            prices = Prices(program, epsilon)
            reach = spread(at(program, task, epsilon, 1.0, 0.3))
            if reach is None:
                continue
            pure = prices.search + reach
            rows.append(
                [task.title, f"{epsilon:g}", f"{prices.search:.2f}", f"{reach:.1f}", f"({reach:.1f}, 0)", f"{prices.draw(reach)[1]:.1f}"]
                + [f"{pure:.1f}", f"{prices.together(reach):.1f}", "both" if prices.together(reach) <= epsilon else "pure only" if pure <= epsilon else "neither"]
            )
    heads = ["records", "epsilon", "search", "range R", "draw, pure", "draw, ledger", "sum with a pure draw", "sum by the ledger", "affordable"]
    return table(heads, rows)


def at_pure(program, task):
    """Returns the cells of draws that pure composition affords: accuracy, its least, and the power of the likelihood."""
    cells, points = [], []
    for epsilon in wang.EPSILONS:
        prices = Prices(program, epsilon)
        budget, share = prices.budget_of_pure()
        power = next((p for p in wang.POWERS if not isinstance(at(program, task, budget, p, share), Refused)), None)
        if power is None:
            cells.append("refused")
            continue
        sampler = f'draws = 1\nlocate = "gradients"\nlocate_share = {share!r}'
        text, files = task.job("ops", sampler, budget, power)
        done = [result for result in program.all([(text, files, seed) for seed in range(wang.SEEDS)]) if not isinstance(result, Refused)]
        found = [task.accuracy({row["name"]: row["mean"] for row in result["posterior_original"]}) for result in done]
        lost = wang.SEEDS - len(done)
        cells.append(f"{statistics.fmean(found):.3f} ({min(found):.3f}), power {power:g}" + (f", {lost} refused" if lost else ""))
        points.append((epsilon, statistics.fmean(found)))
    return cells, points


def output_perturbed(program, task):
    """Returns the cells of output perturbation with normal noise, each at its best ridge: accuracy, its least, and the ridge."""
    d = 1 + len(task.columns)
    fits = {ridge: task.fitted(ridge, [0.0] * d) for ridge in RIDGES}
    cells, points = [], []
    for epsilon in wang.EPSILONS:
        mu = program.account("--epsilon", epsilon, "--delta", DELTA)["mu_budget"]
        best = None
        for ridge, fit in fits.items():
            # A row's slope has at most length sqrt(d), so replacing it moves a fit of curvature at least `ridge` by 2 sqrt(d) / ridge.
            sd = 2 * math.sqrt(d) / ridge / mu
            rng = random.Random(f"output {task.name} {epsilon} {ridge}")
            found = [task.scaled_accuracy([x + rng.gauss(0, sd) for x in fit]) for _ in range(wang.SEEDS)]
            if best is None or statistics.fmean(found) > statistics.fmean(best[0]):
                best = found, ridge
        cells.append(f"{statistics.fmean(best[0]):.3f} ({min(best[0]):.3f}), ridge {best[1]:g}")
        points.append((epsilon, statistics.fmean(best[0])))
    return cells, points


def efficiency(program):
    """Returns a table of the squared errors to the truth of a posterior mean and of one draw, in units of p(1 - p)/N."""
    unit = SHARE * (1 - SHARE) / SHARE_RECORDS
    of_mean, of_draw = [], []
    with tempfile.TemporaryDirectory() as folder:
        tasks = []
        for place in range(SETS):
            rng = random.Random(f"efficiency {place}")
            outcomes = [int(rng.random() < SHARE) for _ in range(SHARE_RECORDS)]
            of_mean.append(((1 + sum(outcomes)) / (2 + SHARE_RECORDS) - SHARE) ** 2 / unit)
            tasks.append((ONE_DRAW.format(draws=DRAWS), [write(folder, f"{place}.csv", ["y"], [[y] for y in outcomes])], place, True, ["p"]))
        for result in program.all(tasks):
            of_draw.append(statistics.fmean((p - SHARE) ** 2 / unit for p in result["draws"]["p"][0]))
    error = lambda values: f"{statistics.fmean(values):.2f} ± {statistics.stdev(values) / math.sqrt(len(values)):.2f}"
    ratio = [a - b for a, b in zip(of_draw, of_mean)]
    return table(["posterior mean", "one draw", "difference"], [[error(of_mean), error(of_draw), error(ratio)]])


def small_samples(program, task):
    """Returns a row for each law with samples of N^(1/2) and N steps, as in the paper's experiments, at epsilon 8: its accuracy, or the refusal."""
    records = len(task.train)
    rows = []
    for algorithm in ("sgld", "sgnht"):
        sampler = f"chains = 1\ndraws = {records}\nwarmup = 0\nlocate_share = 0.3\nbatch = {records**-0.5:.6f}"
        text, files = task.job(algorithm, sampler, 8)
        result = program.all([(text, files, 0)])[0]
        if isinstance(result, Refused):
            rows.append([task.title, f"`{algorithm}`", str(result).removeprefix("conclave: ").removeprefix("error: ")])
        else:
            found = task.accuracy({row["name"]: row["mean"] for row in result["posterior_original"]})
            rows.append([task.title, f"`{algorithm}`", f"accuracy {found:.3f}"])
    return rows
