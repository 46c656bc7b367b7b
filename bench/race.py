"""Compares Conclave with rivals on real data: the table of docs/explanation/race.md.

    v/bin/python bench/race.py --check
    v/bin/python bench/race.py --adult DIR --abalone FILE --out rivals.json [--only WORD ...] [--kinds linear ...]
    v/bin/python bench/race.py --rivals rivals.json [--ours FILE | --conclave target/release/conclave --adult DIR --abalone FILE]

The packages are those of bench/real_sets.py. The first call tests the rivals without noise, their sensitivities and their
accounting. The second runs the rivals and writes their figures as JSON; a file that exists is completed by the missing
cells. The third prints the table. `--ours` is the standard output of bench/real_sets.py, whose errors are over all
parameters, a linear regression's residual sd among them. `--conclave` runs `rehearse` instead, takes coefficients alone,
and writes the file of `--ours-out`.

The error of a run is over the coefficients, in posterior sds without privacy: of a rival from the posterior's mode, which
it estimates, and of Conclave from the posterior's mean. `rms` is the root mean square over runs and coefficients,
`median` the median over runs of a run's root mean square. Both are the least over a rival's settings, each: settings are
chosen with hindsight, by the true error. `common` is the `rms` of the one setting that is best for all sets of a model at
an epsilon, by the geometric mean.
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
from race_settings import grids, names
from race_table import KINDS, read_ours, summary, table
from real_sets import PARTIES, law, rehearse, without_privacy
from real_studies import studies
from rivals import Budget

FIRST, FEWER, MANY, FINAL = 8, 3, 10_000, 40


def figures(errors):
    """Returns the two figures of an array of errors, seeds by coefficients."""
    squares = (errors**2).mean(1)
    return {"rms": float(np.sqrt(squares.mean())), "median": float(np.median(np.sqrt(squares)))}


def tuned(problem, budget, rival, settings, seeds, salt):
    """Returns the least figures of a rival over its settings, with the settings that attain them.

    All settings run with FIRST seeds (FEWER with more than MANY distinct records), and the best FINAL by either figure
    with all seeds."""
    first = FIRST if len(problem.x) <= MANY else FEWER
    run = lambda chosen, count, stream: figures(
        problem.errors(rival(problem, budget, np.random.default_rng([*salt, stream]), count, **chosen))
    )
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
    """Completes the file of the rivals' figures by the missing rivals, and states the common settings of all cells in it."""
    path = pathlib.Path(arguments.out)
    cells = json.loads(path.read_text()) if path.exists() else []
    write = lambda: path.write_text("[" + ",\n".join(json.dumps(cell) for cell in cells) + "]\n")
    for number, study in enumerate(studies(arguments)):
        wanted = study.kind in arguments.kinds and (
            not arguments.only or any(word in f"{study.name} {study.kind}" for word in arguments.only)
        )
        own = {cell["epsilon"]: cell for cell in cells if (cell["set"], cell["kind"]) == (study.name, study.kind)}
        if not wanted or all(
            names(study.kind) <= own.get(epsilon, {"rivals": {}})["rivals"].keys() for epsilon in arguments.epsilon
        ):
            continue
        (mean, covariance), coordinates = without_privacy(study)
        problem = Problem(study, mean, np.sqrt(np.diag(covariance)))
        about = {"set": study.name, "kind": study.kind, "records": problem.n, "parameters": len(mean), "coefficients": problem.d}
        for epsilon in arguments.epsilon:
            started, budget = time.monotonic(), Budget(epsilon)
            if epsilon not in own:
                expected = float(np.sqrt((law(study, coordinates, epsilon) ** 2).mean()))
                own[epsilon] = about | {
                    "epsilon": epsilon,
                    "seeds": arguments.seeds,
                    "mu": budget.mu,
                    "law": expected,
                    "rivals": {},
                }
                cells.append(own[epsilon])
            rivals = own[epsilon]["rivals"]
            for name, (rival, settings) in grids(problem).items():
                if name not in rivals:
                    rivals[name] = tuned(problem, budget, rival, settings, arguments.seeds, (number, int(1000 * epsilon)))
            write()
            shown = ", ".join(f"{name} {figure['rms']:.2f}" for name, figure in rivals.items())
            seconds = time.monotonic() - started
            print(f"{study.name} {study.kind} {epsilon:g}: law {own[epsilon]['law']:.2f}, {shown} ({seconds:.0f} s)", flush=True)
    add_common(arguments, cells)
    write()


def add_common(arguments, cells):
    """Adds `common` to every rival in every cell whose set is available: all cells of a model and epsilon share the
    rival's setting."""
    groups = {}
    for cell in cells:
        for name, figure in cell["rivals"].items():
            groups.setdefault((cell["kind"], cell["epsilon"], name), []).append(np.log(figure["tried"]))
    chosen = {key: int(np.mean(tried, axis=0).argmin()) for key, tried in groups.items()}
    for number, study in enumerate(studies(arguments)):
        own = [cell for cell in cells if (cell["set"], cell["kind"]) == (study.name, study.kind)]
        if not own:
            continue
        (mean, covariance), _ = without_privacy(study)
        problem = Problem(study, mean, np.sqrt(np.diag(covariance)))
        for cell in own:
            budget = Budget(cell["epsilon"])
            salt = (number, int(1000 * cell["epsilon"]), 1)
            for name, (rival, settings) in grids(problem).items():
                setting, figure = settings[chosen[cell["kind"], cell["epsilon"], name]], cell["rivals"][name]
                with np.errstate(all="ignore"):
                    common = figures(
                        problem.errors(rival(problem, budget, np.random.default_rng(salt), cell["seeds"], **setting))
                    )
                figure |= {"common": common["rms"], "common_by": setting}
                # The common setting may not be among the finalists.
                for key in ("rms", "median"):
                    if common[key] < figure[key]:
                        figure |= {key: common[key], f"{key}_by": setting}


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
                    runs = list(
                        pool.map(
                            lambda seed: rehearse(arguments.conclave, folder, study, epsilon, seed), range(1, arguments.seeds + 1)
                        )
                    )
                    kept = [run for run in runs if "refused" not in run and run["adequate"]]
                    cell = {
                        "set": study.name,
                        "kind": study.kind,
                        "epsilon": epsilon,
                        "seeds": arguments.seeds,
                        "answers": len(kept),
                    }
                    if kept:
                        cell |= figures(
                            np.array([(np.array(run["mean"]) - mean)[:d] / np.sqrt(np.diag(covariance))[:d] for run in kept])
                        )
                    print(json.dumps(cell), flush=True)
                    yield cell


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="test the rivals and end")
    parser.add_argument("--adult", help="folder of adult-a.csv, adult-b.csv, adult-c.csv")
    parser.add_argument("--abalone", help="abalone.csv")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1, 3, 8])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, help="models")
    parser.add_argument("--only", nargs="+", help="words, one of which must occur in a set's name and model")
    parser.add_argument("--out", help="JSON file of the rivals' figures, completed if it exists")
    parser.add_argument("--rivals", help="JSON file written by --out, to print the table from")
    parser.add_argument(
        "--ours", help="JSON lines of Conclave's figures, as printed by bench/real_sets.py or written by --ours-out"
    )
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
    ours = read_ours(arguments.ours) if arguments.ours else []
    if arguments.conclave:
        ours = list(run_ours(arguments, [(cell["set"], cell["kind"], cell["epsilon"]) for cell in cells]))
        if arguments.ours_out:
            pathlib.Path(arguments.ours_out).write_text("".join(json.dumps(cell) + "\n" for cell in ours))
    print("\n".join(table(cells, ours, arguments.figure)))
    print("\n" + summary(cells, ours, arguments.figure))


if __name__ == "__main__":
    main()
