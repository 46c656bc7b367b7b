"""Compares Conclave with rivals on real data: the table of docs/explanation/race.md.

    v/bin/python bench/race.py --check
    v/bin/python bench/race.py --adult DIR --abalone FILE --out rivals.json [--only WORD ...] [--kinds linear logistic]
    v/bin/python bench/race.py --rivals rivals.json [--ours FILE | --conclave target/release/conclave --adult DIR --abalone FILE]

The packages are those of bench/real_sets.py. The first call tests the rivals without noise, their sensitivities and their
accounting. The second runs the rivals and writes their figures as JSON; a file that exists is completed by the missing cells. The third prints
the table. `--ours` is the standard output of bench/real_sets.py, whose errors are over all parameters, a linear regression's residual
sd among them. `--conclave` runs `rehearse` instead, takes coefficients alone, and writes the file of `--ours-out`.

The error of a run is over the coefficients, in posterior sds without privacy: of a rival from the posterior's mode, which it estimates, and of
Conclave from the posterior's mean. `rms` is the root mean square over runs and coefficients, `median` the median over runs of
a run's root mean square. Both are the least over a rival's settings, each: settings are chosen with hindsight, by the true error. `common`
is the `rms` of the one setting that is best for all sets of a model at an epsilon, by the geometric mean.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import time

import numpy as np

from race_problem import Problem
from real_sets import PARTIES, law, rehearse, without_privacy
from real_studies import studies
from rivals import Budget, grids

FIRST, FEWER, MANY, FINAL = 8, 3, 10_000, 12
RIVALS = {"ada_ssp": "AdaSSP", "dp_gd": "DP-GD", "newton": "Newton", "ihm": "IHM", "newton_direction": "Newton †"}
TRUSTED = "newton_direction"
LIMIT_OF_LAW = 3.0


def figures(errors):
    """Returns the two figures of an array of errors, seeds by coefficients."""
    squares = (errors**2).mean(1)
    return {"rms": float(np.sqrt(squares.mean())), "median": float(np.median(np.sqrt(squares)))}


def tuned(problem, budget, rival, settings, seeds, salt):
    """Returns the least figures of a rival over its settings, with the settings that attain them.

    All settings run with FIRST seeds (FEWER with more than MANY distinct records), and the best FINAL by either figure with all seeds."""
    first = FIRST if len(problem.x) <= MANY else FEWER
    run = lambda chosen, count, stream: figures(problem.errors(rival(problem, budget, np.random.default_rng([*salt, stream]), count, **chosen)))
    with np.errstate(all="ignore"):
        tried = [run(chosen, first, 0) for chosen in settings]
        best = {i for key in ("rms", "median") for i in sorted(range(len(settings)), key=lambda i: tried[i][key])[:FINAL]}
        final = {i: run(settings[i], seeds, 1) for i in best}
    out = {"settings": len(settings), "tried": [float(f"{figure['rms']:.3g}") for figure in tried]}
    for key in ("rms", "median"):
        chosen = min(final, key=lambda i: final[i][key])
        out[key], out[f"{key}_by"] = final[chosen][key], settings[chosen]
    return out


def run_rivals(arguments):
    path = pathlib.Path(arguments.out)
    cells = json.loads(path.read_text()) if path.exists() else []
    for number, study in enumerate(studies(arguments)):
        wanted = study.kind in arguments.kinds and (not arguments.only or any(word in f"{study.name} {study.kind}" for word in arguments.only))
        missing = [e for e in arguments.epsilon if not any((c["set"], c["kind"], c["epsilon"]) == (study.name, study.kind, e) for c in cells)]
        if not wanted or not missing:
            continue
        (mean, covariance), coordinates = without_privacy(study)
        problem = Problem(study, mean, np.sqrt(np.diag(covariance)))
        for epsilon in missing:
            started, budget = time.monotonic(), Budget(epsilon)
            expected = law(study, coordinates, epsilon)
            cell = {"set": study.name, "kind": study.kind, "records": problem.n, "parameters": len(mean), "coefficients": problem.d, "epsilon": epsilon}
            cell |= {"seeds": arguments.seeds, "mu": budget.mu, "law": float(np.sqrt((expected**2).mean()))}
            cell["rivals"] = {
                name: tuned(problem, budget, rival, settings, arguments.seeds, (number, int(1000 * epsilon)))
                for name, (rival, settings) in grids(problem).items()
            }
            cells.append(cell)
            path.write_text("[" + ",\n".join(json.dumps(cell) for cell in cells) + "]\n")
            shown = ", ".join(f"{name} {figure['rms']:.2f}" for name, figure in cell["rivals"].items())
            print(f"{study.name} {study.kind} {epsilon:g}: law {cell['law']:.2f}, {shown} ({time.monotonic() - started:.0f} s)", flush=True)


def run_ours(arguments, wanted):
    """Yields the cells of Conclave, by `conclave rehearse`, with the figures of the coefficients alone."""
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        for study in studies(arguments):
            budgets = [epsilon for name, kind, epsilon in wanted if (name, kind) == (study.name, study.kind)]
            if not budgets:
                continue
            (mean, covariance), _ = without_privacy(study)
            d = 1 + len(study.predictors)
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                for party, part in zip("abc", np.array_split(np.arange(len(study.frame)), PARTIES)):
                    study.frame.iloc[part].to_csv(folder / f"{party}.csv", index=False)
                for epsilon in budgets:
                    (folder / f"{epsilon}.toml").write_text(study.job(epsilon))
                    runs = list(pool.map(lambda seed: rehearse(arguments.conclave, folder, study, epsilon, seed), range(1, arguments.seeds + 1)))
                    kept = [run for run in runs if "refused" not in run and run["adequate"]]
                    cell = {"set": study.name, "kind": study.kind, "epsilon": epsilon, "seeds": arguments.seeds, "answers": len(kept)}
                    if kept:
                        cell |= figures(np.array([(np.array(run["mean"]) - mean)[:d] / np.sqrt(np.diag(covariance))[:d] for run in kept]))
                    print(json.dumps(cell), flush=True)
                    yield cell


def read_ours(path):
    """Returns the cells in a file of JSON lines; other lines are skipped."""
    cells = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line.startswith("{")]
    for cell in cells:
        if "error" in cell:
            cell["rms"] = cell["error"]
    return cells


def add_common(cells):
    """Adds to every rival in every cell the figure of the setting that is best over the cells of its model and epsilon."""
    groups = {}
    for cell in cells:
        for name, figure in cell["rivals"].items():
            groups.setdefault((cell["kind"], cell["epsilon"], name), []).append(figure)
    for group in groups.values():
        tried = np.array([figure["tried"] for figure in group])
        chosen = int(np.log(tried).mean(0).argmin())
        for figure in group:
            figure["common"] = figure["tried"][chosen]


def paired(cells, ours, key):
    """Yields every cell with Conclave's cell, Conclave's figure if there is one, and the best rival's of the same trust model."""
    known = {(cell["set"], cell["kind"], float(cell["epsilon"])): cell for cell in ours}
    for cell in cells:
        own = known.get((cell["set"], cell["kind"], float(cell["epsilon"])))
        yield cell, own, (own or {}).get("median" if key == "median" else "rms"), min(f[key] for name, f in cell["rivals"].items() if name != TRUSTED)


def table(cells, ours, key):
    """Yields the lines of the Markdown table. A ratio above 1 is marked where the law is below LIMIT_OF_LAW."""
    yield f"| set | model | records | parameters | epsilon | law | Conclave | {' | '.join(RIVALS.values())} | ratio |"
    yield "|---" * (8 + len(RIVALS)) + "|"
    for cell, own, mine, best in paired(cells, ours, key):
        ratio = f"{mine / best:.2f}{' !' if mine > best and cell['law'] < LIMIT_OF_LAW else ''}" if mine is not None else "–"
        figure = f"{mine:.2f}" if mine is not None else "no answer" if own else "–"
        if mine is not None and own["answers"] < own["seeds"]:
            figure += f" ({own['answers']} of {own['seeds']})"
        theirs = " | ".join(shown(cell["rivals"].get(name, {}).get(key), best) for name in RIVALS)
        head = f"{cell['set']} | {cell['kind']} | {cell['records']:,} | {cell['parameters']} | {cell['epsilon']:g} | {cell['law']:.2f}"
        yield f"| {head} | {figure} | {theirs} | {ratio} |"


def shown(figure, best):
    """Returns a rival's figure, the best in bold."""
    if figure is None:
        return "–"
    text = f"{figure:.2f}" if figure < 100 else "> 100"
    return f"**{text}**" if figure == best else text


def summary(cells, ours, key):
    """Returns a line on the cells whose law is below the limit."""
    below = [(mine, best) for cell, _, mine, best in paired(cells, ours, key) if cell["law"] < LIMIT_OF_LAW]
    ratios = [mine / best for mine, best in below if mine is not None]
    if not ratios:
        return f"{len(below)} cells have a law below {LIMIT_OF_LAW:g}."
    return (
        f"{len(below)} cells have a law below {LIMIT_OF_LAW:g}. Conclave has a figure in {len(ratios)}, and in {sum(ratio <= 1 for ratio in ratios)} "
        f"it is at most the best rival's. The ratio is {min(ratios):.2f} to {max(ratios):.2f}, its median {np.median(ratios):.2f}."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="test the rivals and end")
    parser.add_argument("--adult", help="folder of adult-a.csv, adult-b.csv, adult-c.csv")
    parser.add_argument("--abalone", help="abalone.csv")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1, 3, 8])
    parser.add_argument("--kinds", nargs="+", default=["linear", "logistic"], help="models: also poisson, negative_binomial")
    parser.add_argument("--only", nargs="+", help="words, one of which must occur in a set's name and model")
    parser.add_argument("--out", help="JSON file of the rivals' figures, completed if it exists")
    parser.add_argument("--rivals", help="JSON file written by --out, to print the table from")
    parser.add_argument("--ours", help="JSON lines of Conclave's figures, as printed by bench/real_sets.py or written by --ours-out")
    parser.add_argument("--conclave", help="program to run for Conclave's figures")
    parser.add_argument("--ours-out", help="file of JSON lines for the figures of --conclave")
    parser.add_argument("--figure", choices=["rms", "median", "common"], default="rms")
    parser.add_argument("--at-once", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if arguments.check:
        import race_checks

        sys.exit(race_checks.main(arguments))
    if arguments.out:
        run_rivals(arguments)
    if not (arguments.rivals or arguments.out):
        parser.error("one of --check, --out and --rivals is required")
    cells = json.loads(pathlib.Path(arguments.rivals or arguments.out).read_text())
    add_common(cells)
    ours = read_ours(arguments.ours) if arguments.ours else []
    if arguments.conclave:
        ours = list(run_ours(arguments, [(cell["set"], cell["kind"], cell["epsilon"]) for cell in cells]))
        if arguments.ours_out:
            pathlib.Path(arguments.ours_out).write_text("".join(json.dumps(cell) + "\n" for cell in ours))
    print("\n".join(table(cells, ours, arguments.figure)))
    print("\n" + summary(cells, ours, arguments.figure))


if __name__ == "__main__":
    main()
