"""Figures 1 and 3 of Heikkilä et al. (2019), and the correction of Barker's test by ridge regression beside ours."""

import math
import random
import statistics
import tempfile

import correction
import heikkila_mixture as mixture
import svg
from runs import Refused, table, write

# A tenth of their records at ten times the power: the tempered posterior has the weight of the same 100 records.
RECORDS, POWER, RUNS, STEPS = 100_000, 1e-3, 10, 5_000
PLACES = [1_000, 2_000, 3_000, 4_000, 5_000]
VARIANCES = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0]
PAIRS = 200
# Bound on a log ratio before tempering, sqrt(b)/N0.
LIMIT = math.sqrt(1000) / 100
CORRECTIONS = [0.5, 1.0, 1.5, 2.0]
SMALL = """name = "correction"
algorithm = "barker"
parties = ["a"]
[model]
kind = "bernoulli"
outcome = "y"
[columns]
y = {{ binary = true }}
[sampler]
chains = 1
draws = 20
warmup = 0
correction = {correction:g}
start = {{ p = 0.5 }}
proposal = {{ kind = "guided", radius = 0.1 }}
[privacy]
epsilon = 8.0
delta = 1e-6
"""


def by_corollary_2(program):
    """Returns the account of their experiment, with the curves of figures 1a and 1b."""
    return program.account("--paper", "heikkila", "--delta", 1e-6)


def curve_table(rows, label, key):
    """Returns a table of a figure's curves, a row for each place of the horizontal axis and a column for each number of records."""
    records = sorted({row["records"] for row in rows})
    places = sorted({key(row) for row in rows})
    at = {(round(key(row), 12), row["records"]): row["epsilon"] for row in rows}
    cell = lambda value: "–" if value is None else f"{value:.4f}" if value < 10 else f"{value:.1f}"
    # Numbers of tests are the same for all numbers of records, and so are rates.
    return table([label, *(f"N = {n:g}" for n in records)], [[f"{place:g}", *(cell(at[round(place, 12), n]) for n in records)] for place in places])


def rate(row):
    return round(row["batch"] / row["records"], 12)


def clipped(states, counts):
    """Returns `(variance, share)`: the share of records' log ratios beyond the bound, by the variance of a random walk from states of the posterior."""
    rng, found = random.Random("clipped"), []
    total = sum(counts.values())
    for variance in VARIANCES:
        beyond = 0
        for state in rng.choices(states, k=PAIRS):
            to = [x + rng.gauss(0, math.sqrt(variance)) for x in state]
            beyond += sum(n for y, n in counts.items() if abs(mixture.log_likelihood(y, to) - mixture.log_likelihood(y, state)) > LIMIT)
        found.append((variance, beyond / (PAIRS * total)))
    return found


def berry_esseen(states, counts, size=1000, weight=100):
    """Returns the mean bound of Theorem 3 over proposals of variance .01: as printed, and with the ratio in units of its sd, as in Seita et al."""
    rng, printed, standard = random.Random("berry"), [], []
    total = sum(counts.values())
    for state in rng.choices(states, k=PAIRS):
        to = [x + rng.gauss(0, 0.1) for x in state]
        ratios = [(n / total, weight * (mixture.log_likelihood(y, to) - mixture.log_likelihood(y, state))) for y, n in counts.items()]
        mean = sum(share * r for share, r in ratios)
        moment = lambda power: sum(share * abs(r - mean) ** power for share, r in ratios)
        sd = math.sqrt(moment(2))
        printed.append((6.4 * moment(3) + 2 * moment(1)) / math.sqrt(size))
        standard.append((6.4 * moment(3) / sd**3 + 2 * moment(1) / sd) / math.sqrt(size))
    return statistics.fmean(printed), statistics.fmean(standard)


def starts(program):
    """Returns a table of what a start costs: the paper's, and the default share of a search."""
    mu = lambda epsilon: program.account("--epsilon", epsilon, "--delta", 1e-6)["mu_budget"]
    of = lambda value: program.account("--queries", f"{value!r}x1", "--delta", 1e-6)["epsilon_gdp"]
    theirs, tests = mu(0.21), program.account("--paper", "heikkila", "--delta", 1e-6)
    rows = [
        ["theirs, variational, as claimed", "0.21", f"{tests['epsilon']:.3f}", f"{0.21 + tests['epsilon']:.3f}, at delta 2e-6"],
        ["theirs, by our accounting", "0.21", f"{tests['epsilon_composed']:.4f}", f"{of(math.hypot(theirs, mu(tests['epsilon_composed']))):.3f}"],
    ]
    for epsilon in (0.18, 0.5):
        part = math.sqrt(0.2) * mu(epsilon)
        rows.append([f"ours, a fifth of mu² of a job of epsilon {epsilon:g}", f"{of(part):.3f}", f"{of(math.sqrt(0.8) * mu(epsilon)):.3f}", f"{epsilon:g}"])
    return table(["start", "epsilon of the start", "of the tests", "together"], rows)


def figure_1(program, path, states, counts):
    found, shares = by_corollary_2(program), clipped(states, counts)
    series = lambda rows, key: [
        (f"N = {n:g}", [(key(row), row["epsilon"]) for row in rows if row["records"] == n and row["epsilon"] is not None], "line")
        for n in sorted({row["records"] for row in rows})
    ]
    panels = [
        svg.Panel("1a: 5,000 tests", "sampling rate q", "epsilon by Corollary 2", series(found["figure_1a"], rate), (True, True)),
        svg.Panel("1b: q = 0.001", "tests T", "epsilon by Corollary 2", series(found["figure_1b"], lambda row: row["steps"]), (True, True)),
        svg.Panel("1c: the mixture", "variance of a proposal", "share of ratios clipped", [("clipped", shares, "line")], (True, False), (None, None, 0, 1)),
    ]
    svg.plot(path, "Figure 1: epsilon by Corollary 2, and the share of log ratios that are clipped", panels)
    return {
        "figure_1a": curve_table(found["figure_1a"], "q", rate),
        "figure_1b": curve_table(found["figure_1b"], "T", lambda row: row["steps"]),
        "figure_1c": table(["variance of a proposal", *(f"{v:g}" for v, _ in shares)], [["share clipped", *(f"{share:.3f}" for _, share in shares)]]),
    }


def corollary_1(program):
    """Returns a table of Corollary 1 on all records at C = 2, beside the price of the same releases."""
    rows = []
    for bound in (1e-4, 1e-3, 1e-2, 1e-1):
        found = program.account("--paper", "heikkila", "--sensitivity", bound, "--noise", math.sqrt(2), "--releases", STEPS, "--delta", 1e-6)
        rows.append([f"{bound:g}", f"{found['epsilon']:.4g}", f"{found['order']:.4g}", f"{found['epsilon_gdp']:.4g}"])
    return table(["B", "epsilon by Corollary 1", "at order", "epsilon by our accounting"], rows)


def corrections(program):
    """Returns the table of corrections: theirs after Seita et al., and ours as results report it."""
    with tempfile.TemporaryDirectory() as folder:
        file = write(folder, "a.csv", ["y"], [[i % 2] for i in range(1000)])
        ours = {}
        for variance in CORRECTIONS[1:]:
            ours[variance] = program.rehearse(SMALL.format(correction=variance), [file], 0)["barker"]["sup_error"]
    rows = []
    for variance, solved, cut in correction.ridge_rows(CORRECTIONS):
        mine = f"{ours[variance]:.1e}" if variance in ours else "–"
        rows.append([f"{variance:g}", f"{solved[0]:.1e}", f"{solved[2]:.3f}", f"{cut[0]:.1e}", f"{cut[1]:.2f}", mine])
    return table(["C", "error as solved", "negative share", "error with negative weights at 0", "variance then (right: 3.29)", "error of ours"], rows)


def figure_3(program, path):
    """Returns the table of figure 3: errors of means and variances of the first steps against a chain without privacy, and against the exact posterior."""
    values = mixture.records(RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        file = write(folder, "a.csv", ["y"], ([f"{y:.4f}"] for y in values))
        # Each run has proposals of its own, and not only noise of its own.
        job = lambda seed: mixture.WALK_JOB.format(power=POWER, steps=STEPS, epsilon=2.0, seed=seed + 1)
        results = program.all([(job(seed), [file], seed, True, mixture.NAMES) for seed in range(RUNS)])
    done = [result for result in results if not isinstance(result, Refused)]
    counts = mixture.histogram(values, 0.1)
    mean, variance, _ = mixture.exact(counts, POWER)
    plain = mixture.walk(counts, POWER, STEPS, "baseline")
    base = [summary(plain[k], STEPS) for k in (0, 1)]
    mu = program.account("--epsilon", max(result["parties"][0]["epsilon_spent"] for result in done), "--delta", 1e-6)["mu_budget"]
    rows, curves = [], {}
    for steps in PLACES:
        spent = program.account("--queries", f"{mu * math.sqrt(steps / STEPS)}x1", "--delta", 1e-6)["epsilon_gdp"]
        cells = [f"{steps:,}", f"{spent:.3f}"]
        for moment in (0, 1):
            for k in (0, 1):
                found = [summary(result["draws"][mixture.NAMES[k]][0], steps)[moment] for result in done]
                for name, right in (("their baseline", base[k][moment]), ("exact", (mean, variance)[moment][k])):
                    errors = [abs(x - right) for x in found]
                    curves.setdefault((moment, k, name), []).append((spent, statistics.fmean(errors)))
                    cells.append(f"{statistics.fmean(errors):.2f} ± {statistics.stdev(errors) / math.sqrt(len(errors)):.2f}")
        rows.append(cells)
    panel = lambda moment, title: svg.Panel(
        title, "epsilon spent", "mean absolute error", [(f"theta_{k + 1}, {name}", curves[moment, k, name], "line" if name == "exact" else "dashed") for k in (0, 1) for name in ("their baseline", "exact")], limits=(None, None, 0, None)
    )
    svg.plot(path, "Figure 3: errors of intermediate means and variances", [panel(0, "means"), panel(1, "variances")])
    heads = ["steps", "epsilon spent", *(f"{what} {k}: {name}" for what in ("mean", "variance") for k in (1, 2) for name in ("their baseline", "exact"))]
    off = lambda moment: ", ".join(f"{base[k][moment] - (mean, variance)[moment][k]:+.2f}" for k in (0, 1))
    return {"figure_3": table(heads, rows), "figure_3_runs": len(done), "baseline_means": off(0), "baseline_variances": off(1)}


def summary(chain, steps):
    return statistics.fmean(chain[:steps]), statistics.pvariance(chain[:steps])


def words(program, out):
    """Makes the figures and returns the page's tables by name."""
    counts = mixture.histogram(mixture.records(1_000_000), 0.1)
    _, _, states = mixture.exact(counts, 1e-4)
    printed, standard = berry_esseen(states, counts)
    return {
        "berry_printed": f"{printed:.0f}",
        "berry_standard": f"{standard:.2f}",
        "starts": starts(program),
        **figure_1(program, out / "heikkila-figure-1.svg", states, counts),
        "corollary_1": corollary_1(program),
        "corrections": corrections(program),
        **figure_3(program, out / "heikkila-figure-3.svg"),
    }
