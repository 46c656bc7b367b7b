"""Wang, Fienberg & Smola (2015): figure 1 on Abalone and Adult, and the price of their noise."""

import csv
import math
import pathlib
import random
import statistics
import tempfile

import posteriors
import svg
import wang_more
from runs import Refused, Skipped, table, write
from wang_text import TEXT

EPSILONS, SEEDS, PRIOR_SD = [0.3, 1, 3, 8], 12, 2.5
POWERS = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001]
ADULT = {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99), "male": None, "married": None}
ABALONE = {
    **{"male": None, "infant": None, "length": (0, 1), "diameter": (0, 1), "height": (0, 1.2)},
    **{"whole_weight": (0, 3), "shucked_weight": (0, 1.5), "viscera_weight": (0, 1), "shell_weight": (0, 1.2)},
}
JOB = """name = "wang"
algorithm = "{algorithm}"
parties = [{parties}]
[model]
kind = "logistic"
outcome = "y"
predictors = [{predictors}]
power = {power}
[columns]
y = {{ binary = true }}
{columns}
[sampler]
{sampler}
[privacy]
epsilon = {epsilon}
delta = 1e-6
"""
CHAIN = "chains = 1\ndraws = 2000\nlocate_share = 0.3"
# Algorithm 3: half of the budget, in mu², for the draw at which the chain starts.
HYBRID = f'{CHAIN}\nstart = "ops"\nstart_share = 0.5'
OPS = 'draws = 1\nlocate = "gradients"\nlocate_share = 0.3'
ROWS = [
    ("`ops`", "ops", OPS),
    ("`sgld`", "sgld", CHAIN),
    ("`sghmc`", "sghmc", CHAIN),
    ("`sgnht`", "sgnht", CHAIN),
    ("`sgfs`", "sgfs", CHAIN),
    ("`sgld` from a draw", "sgld", HYBRID),
    ("`sgnht` from a draw", "sgnht", HYBRID),
    ("`hmc`", "hmc", CHAIN),
    ("`noisy-statistics`", "auto", "draws = 2000"),
]
DRAWN = ["`noisy-statistics`"]
# Rows of the made-up records.
FEW = ["`ops`", "`noisy-statistics`"]


def read(data, name):
    """Reads the rows of a file as dictionaries of numbers; raises `Skipped` if the folder or the file is missing."""
    if data is None:
        raise Skipped("no --data: Abalone and Adult are read from a folder")
    if not (data / name).exists():
        raise Skipped(f"{name} is not in {data}")
    with (data / name).open() as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


class Task:
    """A data set: its owners' training rows, and the held-out fifth of all rows."""

    def __init__(self, folder, name, columns, shards):
        self.rows = ROWS
        self.name, self.columns, self.title = name, columns, name.replace("-", " ").capitalize()
        rng = random.Random(name)
        self.test, owners = [], []
        for shard in shards:
            rng.shuffle(shard)
            fifth = len(shard) // 5
            self.test += shard[:fifth]
            owners.append(shard[fifth:])
        self.train = [row for rows in owners for row in rows]
        header = ["y", *columns]
        cells = lambda rows: [[f"{row[key]:g}" for key in header] for row in rows]
        self.files = [write(folder, f"{name}-{i}.csv", header, cells(rows)) for i, rows in enumerate(owners)]
        self.pooled = [write(folder, f"{name}-all.csv", header, cells(self.train))]

    def job(self, algorithm, sampler, epsilon, power=1.0):
        """Returns the job and the files of its owners; a draw has one owner."""
        files = self.pooled if algorithm == "ops" or sampler == HYBRID else self.files
        columns = [f"{key} = {{ binary = true }}" if ends is None else f"{key} = {{ min = {ends[0]}, max = {ends[1]} }}" for key, ends in self.columns.items()]
        text = JOB.format(
            algorithm=algorithm,
            parties=", ".join(f'"owner-{i + 1}"' for i in range(len(files))),
            predictors=", ".join(f'"{key}"' for key in self.columns),
            columns="\n".join(columns),
            sampler=sampler,
            epsilon=float(epsilon),
            power=power,
        )
        return text, files

    def accuracy(self, means):
        """Returns the fraction of held-out rows classified correctly by the sign of the linear predictor at `means`."""
        right = sum((means["intercept"] + sum(means[key] * row[key] for key in self.columns) > 0) == (row["y"] > 0) for row in self.test)
        return right / len(self.test)

    def majority(self):
        share = statistics.fmean(row["y"] for row in self.test)
        return max(share, 1 - share)

    def fitted(self, ridge, tilt):
        """Returns the coefficients that minimise the negative log likelihood of all training rows plus `ridge/2` times their squared length plus their
        product with `tilt`, by Newton's method on columns scaled as in the program."""
        design = [(self.scaled(row), row["y"]) for row in self.train]
        d = len(tilt)
        at = [0.0] * d
        for _ in range(12):
            slope = [-ridge * value - b for value, b in zip(at, tilt)]
            precision = [[(i == j) * ridge for j in range(d)] for i in range(d)]
            for x, y in design:
                p = 1 / (1 + math.exp(-sum(a * b for a, b in zip(at, x))))
                for i in range(d):
                    slope[i] += (y - p) * x[i]
                    for j in range(i + 1):
                        precision[i][j] += p * (1 - p) * x[i] * x[j]
            for i in range(d):
                for j in range(i):
                    precision[j][i] = precision[i][j]
            by = [sum(c * s for c, s in zip(row, slope)) for row in posteriors.inverse(precision)]
            at = [a + b for a, b in zip(at, by)]
            if max(abs(b) for b in by) < 1e-9:
                break
        return at

    def scaled(self, row):
        middle = lambda ends: (0.0, 1.0) if ends is None else ((ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2)
        return [1.0, *((row[key] - m) / h for key, (m, h) in ((key, middle(ends)) for key, ends in self.columns.items()))]

    def scaled_accuracy(self, at):
        right = sum((sum(a * b for a, b in zip(at, self.scaled(row))) > 0) == (row["y"] > 0) for row in self.test)
        return right / len(self.test)

    def plain(self):
        """Returns the accuracy of the posterior mode of all training rows."""
        return self.scaled_accuracy(self.fitted(PRIOR_SD**-2, [0.0] * (1 + len(self.columns))))

    def perturbed(self, epsilon, seed, delta=1e-6):
        """Returns the accuracy of objective perturbation, by Kifer, Smith & Thakurta (2012), Algorithm 1 with normal noise. A row's slope has at most
        length sqrt(d), since its `d` columns have magnitude at most 1, and its curvature is at most a quarter of the square. A replaced row moves the sum
        of slopes by twice that length, so the noise is twice as large as for a row that is added; the ridge is the same, since the ratio of the determinants
        with either row is at most that with the row and without."""
        rng, d = random.Random(f"{self.name} {epsilon} {seed}"), 1 + len(self.columns)
        sd = 2 * math.sqrt(d * (8 * math.log(2 / delta) + 4 * epsilon)) / epsilon
        return self.scaled_accuracy(self.fitted(2 * (d / 4) / epsilon, [rng.gauss(0, sd) for _ in range(d)]))


class Cell:
    """The runs of one algorithm at one epsilon."""

    def __init__(self, task, results, asked, power):
        done = [result for result in results if not isinstance(result, Refused)]
        self.refused, self.power = len(results) - len(done), power
        self.asked = not isinstance(asked, Refused)
        self.doubted = sum(not (result.get("adequacy") or {}).get("adequate", True) for result in done)
        self.found = [task.accuracy({row["name"]: row["mean"] for row in result["posterior_original"]}) for result in done]
        self.ess = statistics.median(min(row.get("ess_bulk") or 0.0 for row in result["posterior"]) for result in done) if done else 0.0

    def text(self):
        if not self.found:
            return "refused"
        marks = ("" if self.asked else " ×") + (" °" if self.doubted else "")
        power = f", power {self.power:g}" if self.power != 1.0 else ""
        lost = f", {self.refused} refused" if self.refused else ""
        return f"{statistics.fmean(self.found):.3f} ({min(self.found):.3f}){power}{lost}{marks}"


def choice_power(program, task, sampler, epsilon):
    """Returns the largest power at which the budget covers one draw by `ops`."""
    for power in POWERS:
        try:
            program.rehearse(*task.job("ops", sampler, epsilon, power), 0)
            return power
        except Refused:
            continue
    return POWERS[-1]


def cells(program, task, rows):
    """Returns the cells of these rows by name and epsilon."""
    found = {}
    for epsilon in EPSILONS:
        for name, algorithm, sampler in rows:
            power = 1.0
            if algorithm == "ops":
                power = choice_power(program, task, sampler, epsilon)
            text, files = task.job(algorithm, sampler, epsilon, power)
            *results, asked = program.all([*((text, files, seed) for seed in range(SEEDS)), (text, files, 0, False)])
            found[name, epsilon] = Cell(task, results, asked, power)
    return found


def paper_noise(program, records, claimed):
    """Returns `(multiplier, epsilon)`, the true epsilon of the noise of Theorem 4, with samples of size and passes `N^(1/2)` as in the paper's experiments."""
    size, delta = round(records**0.5), 1e-6
    steps = records
    sd = math.sqrt(128 * steps / claimed**2 * math.log(2.5 * steps / delta) * math.log(2 / delta))
    multiplier = sd * size / records
    price = program.account(
        *("--subsampled", "--batch", size, "--records", records, "--noise-multiplier", multiplier, "--releases", steps, "--delta", delta)
    )
    return multiplier, price["epsilon_composed"]


def named(name):
    return "`ops`, by the ledger" if name == "`ops`" else name


def rows_of(task, found, pure, output, tilted):
    """Returns the rows of a data set's table."""
    rows = [[named(name), *(found[name, epsilon].text() for epsilon in EPSILONS), "–" if name == "`ops`" else f"{found[name, 8].ess:,.0f}"] for name, *_ in task.rows]
    rows.insert(1, ["`ops`, a pure draw", *pure, "–"])
    rows.append(["objective perturbation", *(f"{statistics.fmean(tilted[e]):.3f} ({min(tilted[e]):.3f})" for e in EPSILONS), "–"])
    rows.append(["output perturbation", *output, "–"])
    return table(["algorithm", *(f"epsilon {epsilon}" for epsilon in EPSILONS), "ESS at 8"], rows)


def panel(task, plain, found, pure, tilted):
    """Returns a data set's panel of the figure."""
    mean = lambda name: [(e, statistics.fmean(found[name, e].found)) for e in EPSILONS if found[name, e].found]
    series = [("non-private", [(epsilon, plain) for epsilon in EPSILONS], "dashed"), ("ops, ledger", mean("`ops`"), "line"), ("ops, pure draw", pure, "line")]
    series += [(name.strip("`"), mean(name), "line") for name in DRAWN]
    series.append(("objective perturbation", [(epsilon, statistics.fmean(tilted[epsilon])) for epsilon in EPSILONS], "dashed"))
    return svg.Panel(task.title, "epsilon", "accuracy", [one for one in series if one[1]], (True, False), (None, None, 0.4, 1.0))


def make(program, out, data):
    abalone = [{**row, "y": float(row["rings"] > 9)} for row in read(data, "abalone.csv")]
    adult = [[{**row, "y": row["income_over_50k"]} for row in read(data, f"adult-{shard}.csv")] for shard in "abc"]
    words, panels = {}, []
    with tempfile.TemporaryDirectory() as folder:
        sets = [("adult", ADULT, adult), ("abalone", ABALONE, [abalone]), ("two-normals", wang_more.TWO, [wang_more.two_normals()])]
        tasks = [Task(folder, *one) for one in sets]
        tasks[-1].rows = [row for row in ROWS if row[0] in FEW]
        for task in tasks:
            key, plain = task.name.partition("-")[0], task.plain()
            found = cells(program, task, task.rows)
            tilted = {epsilon: [task.perturbed(epsilon, seed) for seed in range(SEEDS)] for epsilon in EPSILONS}
            (pure, points), output = wang_more.at_pure(program, task), wang_more.output_perturbed(program, task)
            words[key] = rows_of(task, found, pure, output, tilted)
            words |= {f"{key}_plain": f"{plain:.3f}", f"{key}_majority": f"{task.majority():.3f}"}
            words |= {f"{key}_train": f"{len(task.train):,}", f"{key}_test": f"{len(task.test):,}"}
            panels.append(panel(task, plain, found, points, tilted))
        words["untempered"] = wang_more.untempered(program, tasks)
        words["small"] = table(["records", "algorithm", "outcome"], [row for task in tasks for row in wang_more.small_samples(program, task)])
    words["efficiency"] = wang_more.efficiency(program)
    svg.plot(out / "wang.svg", "Accuracy on held-out records against epsilon", panels)
    noise = [(records, claimed, *paper_noise(program, records, claimed)) for records, claimed in [(32_561, 1.0), (32_561, 0.1), (4_177, 1.0)]]
    words["noise"] = table(
        ["records", "claimed epsilon", "noise, of a record's bound", "true epsilon"],
        [[f"{records:,}", f"{claimed:g}", f"{multiplier:,.0f}", f"{true:.4f}"] for records, claimed, multiplier, true in noise],
    )
    words |= {"sets": wang_more.SETS, "draws": wang_more.DRAWS, "normals": f"{wang_more.NORMALS:,}"}
    pathlib.Path(out / "wang.md").write_text(TEXT.format(seeds=SEEDS, **words), encoding="utf-8")
