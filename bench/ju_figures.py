"""Ju, Awan, Gong & Rao (2022), figures 1a, 1b, 2 and S1: posterior means and acceptance over many Laplace releases of one data set; and the acceptance of both kinds
of proposals in a logistic regression.

    python3 bench/ju_figures.py [--releases 100] [--threads 1] [--log FILE] [--out docs/explanation/gallery]

Runs the tests `figures_of_*` of `inference/src/sampler/augmentation/tests/ju_figures.rs`, on the sampler that jobs by `algorithm = "augmentation"` run
(Laplace noise as in the paper). Writes `ju-figures.svg` and `ju-figures.txt` to the folder. 100 releases at five epsilons of all models take some twenty minutes
of one processor.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "gallery"))

import posteriors
import svg
from runs import table

CLASSES, PRIOR = 5, 2.0
BOUND, SD, PRIOR_SD = 10.0, math.sqrt(2), 2.0


def measured(text):
    """Returns the printed figures by model, in order of epsilon."""
    found = {}
    for line in text.splitlines():
        at = line.find("figure {")
        if at >= 0:
            figure = json.loads(line[at + len("figure "):])
            found.setdefault(figure["model"], []).append(figure)
    return {model: sorted(figures, key=lambda figure: figure["epsilon"]) for model, figures in found.items()}


def plain(model, records):
    """Returns the posterior means of the records without privacy: of the classes' probabilities, or of the coefficients in the data's units."""
    if model == "log-linear":
        # The first feature's cells are numbered class after class, three levels each.
        classes = [record[0] // 3 for record in records]
        return [(PRIOR + classes.count(k)) / (PRIOR * CLASSES + len(records)) for k in range(CLASSES)]
    design = [[1.0, BOUND * u, BOUND * v] for u, v, _ in records]
    return posteriors.linear(design, [BOUND * y for *_, y in records], SD, PRIOR_SD)[0]


def means(model, run):
    """Returns a run's means in the data's units: the intercept is in units of the outcome's half width."""
    return run["means"] if model == "log-linear" else [BOUND * run["means"][0], *run["means"][1:]]


def mean_table(model, names, figures):
    right = plain(model, figures[0]["records"])
    rows = []
    for figure in figures:
        columns = list(zip(*(means(model, run) for run in figure["runs"])))
        rows.append([f"{figure['epsilon']:g}", *(f"{statistics.fmean(column):.3f} ± {statistics.stdev(column):.3f}" for column in columns)])
    rows.append(["without privacy", *(f"{x:.3f}" for x in right)])
    rows.append(["prior", *([f"{1 / CLASSES:.3f}"] * CLASSES if model == "log-linear" else ["0.000"] * 3)])
    return table(["epsilon", *names], rows)


def acceptance_table(found):
    rows = []
    for log_linear, linear in zip(found["log-linear"], found["linear"]):
        epsilon = log_linear["epsilon"]
        cells = [f"{epsilon:g}", f"{math.exp(-epsilon):.3g}", f"{2 / (1 + math.exp(epsilon)):.3g}"]
        for figure in (log_linear, linear):
            shares = [run["acceptance"] for run in figure["runs"]]
            cells += [f"{statistics.fmean(shares):.3f}", f"{min(shares):.3f}", f"{min(run['least'] for run in figure['runs']):.2f}"]
        rows.append(cells)
    heads = [f"{model}: {what}" for model in ("log-linear", "linear") for what in ("mean", "least chain", "least sweep")]
    return table(["epsilon", "e^-epsilon", "2/(1 + e^epsilon)", *heads], rows)


def local_table(model, both):
    """Compares proposals of records from the model alone with those beside which each record has a local one. The acceptance of the local ones is twice that of both less the model's."""
    rows = []
    for alone, together in zip(model, both):
        shares = lambda figure: [run["acceptance"] for run in figure["runs"]]
        ess = lambda figure: f"{statistics.median(run['ess'] for run in figure['runs']):.0f}"
        epsilon, mean = alone["epsilon"], statistics.fmean(shares(alone))
        local = 2 * statistics.fmean(shares(together)) - mean
        least = min(run["least"] for run in alone["runs"])
        cells = [f"{epsilon:g}", f"{math.exp(-epsilon):.3g}", f"{2 / (1 + math.exp(epsilon)):.3g}", f"{mean:.3f}", f"{min(shares(alone)):.3f}", f"{least:.2f}"]
        rows.append([*cells, f"{local:.3f}", ess(alone), ess(together)])
    heads = ["from the model: mean", "least chain", "least sweep", "local: mean", "ESS, model alone", "ESS, both"]
    return table(["epsilon", "e^-epsilon", "2/(1 + e^epsilon)", *heads], rows)


def panels(found):
    places = lambda figures, at: [(figure["epsilon"], means(model, run)[at]) for figure in figures for run in figure["runs"]]
    made = []
    for model, title, names, y in (("log-linear", "1a: posterior means", ["p1", "p4"], "p"), ("linear", "2: posterior means", ["b0", "b1", "b2"], "coefficient")):
        figures = found[model]
        right = plain(model, figures[0]["records"])
        series = []
        for name in names:
            at = int(name[1]) - (model == "log-linear")
            series.append((name, places(figures, at), "cloud"))
            series.append((f"{name}, no privacy", [(figure["epsilon"], right[at]) for figure in figures], "dashed"))
        made.append(svg.Panel(title, "epsilon", y, series, (True, False)))
    for model, title in (("log-linear", "1b: acceptance, log-linear"), ("linear", "S1: acceptance, linear")):
        figures = found[model]
        series = [
            ("mean of a chain", [(figure["epsilon"], run["acceptance"]) for figure in figures for run in figure["runs"]], "cloud"),
            ("least sweep", [(figure["epsilon"], run["least"]) for figure in figures for run in figure["runs"]], "cloud"),
            ("e^-epsilon", [(figure["epsilon"], math.exp(-figure["epsilon"])) for figure in figures], "dashed"),
        ]
        made.append(svg.Panel(title, "epsilon", "share of records", series, (True, False), (None, None, 0, 1)))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--program", help="the test binary of conclave-inference; cargo builds it where none is given")
    parser.add_argument("--log", help="output of an earlier run, from which only the tables are made")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/explanation/gallery")
    given = parser.parse_args()
    if given.log:
        text = pathlib.Path(given.log).read_text()
    else:
        tests = ["--ignored", "--nocapture", "--test-threads=1", "figures_of_"]
        command = [given.program, *tests] if given.program else ["cargo", "test", "-p", "conclave-inference", "--lib", "--", *tests]
        environment = {**os.environ, "CONCLAVE_JU_REPLICATES": str(given.releases), "RAYON_NUM_THREADS": str(given.threads)}
        text = subprocess.run(command, cwd=ROOT / "inference", env=environment, capture_output=True, text=True, check=True).stdout
    found = measured(text)
    releases = len(found["log-linear"][0]["runs"])
    words = [
        f"Posterior means over {releases} releases of one data set, mean ± sd over releases: log-linear model, after figure 1a",
        mean_table("log-linear", [f"p{k + 1}" for k in range(CLASSES)], found["log-linear"]),
        "Linear regression, after figure 2",
        mean_table("linear", ["b0", "b1", "b2"], found["linear"]),
        "Share of accepted records, after figures 1b and S1",
        acceptance_table(found),
        "Share of accepted records in a logistic regression, and effective draws of the parameter with the fewest from 1,000 sweeps",
        local_table(found["logistic"], found["logistic, local"]),
    ]
    (given.out / "ju-figures.txt").write_text("\n\n".join(word.strip() for word in words) + "\n")
    svg.plot(given.out / "ju-figures.svg", "Posterior means and acceptance over many releases", panels(found))


if __name__ == "__main__":
    main()
