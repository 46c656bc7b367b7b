"""Chains driven by gradients on real data with a factor: the figures of docs/explanation/real-data.md's section on `hmc`.

    python3 -m venv v && v/bin/pip install numpy
    v/bin/python bench/hmc_adult.py --conclave target/release/conclave --adult DIR [--seeds 20] [--epsilon 8] [--work DIR]

DIR holds adult-a.csv, adult-b.csv and adult-c.csv (UCI Adult, in three shards). Years of education are converted to a factor of six levels, and
capital gain to a binary column. `conclave rehearse` runs each job with the sampler, kernels, noise and accounting of a real run. The posterior
without privacy is computed here, by importance sampling from a Student t around the mode.
"""

import argparse
import concurrent.futures
import csv
import json
import math
import pathlib
import subprocess
import tempfile

import numpy as np

DELTA, PRIOR_SD = 1e-6, 2.5
LEVELS = ["to 8", "9", "10", "11 or 12", "13", "from 14"]
HEADER = ["rich", "age", "hours", "male", "married", "gain", "education"]
PARTIES = "abc"
PREDICTORS = {
    12: ["age", "hours", "male", "married", "gain", "education", "age:married"],
    6: ["age", "hours", "male", "married", "gain"],
}


def level(years):
    return LEVELS[0 if years <= 8 else 1 if years == 9 else 2 if years == 10 else 3 if years <= 12 else 4 if years == 13 else 5]


def shard(path):
    with open(path) as file:
        for row in csv.DictReader(file):
            gain = int(float(row["capital_gain"]) > 0)
            yield [row["income_over_50k"], row["age"], row["hours_per_week"], row["male"], row["married"], gain, level(int(row["education_num"]))]


def design(rows, predictors):
    coded = lambda j, low, high: (np.clip(np.array([float(row[j]) for row in rows]), low, high) - (low + high) / 2) / ((high - low) / 2)
    columns = {"age": coded(1, 17, 90), "hours": coded(2, 1, 99)}
    columns |= {name: np.array([float(row[j]) for row in rows]) for j, name in [(3, "male"), (4, "married"), (5, "gain")]}
    out = [np.ones(len(rows))]
    for name in predictors:
        if name == "education":
            out += [np.array([float(row[6] == of) for row in rows]) for of in LEVELS[1:]]
        elif ":" in name:
            out.append(np.prod([columns[part] for part in name.split(":")], axis=0))
        else:
            out.append(columns[name])
    return np.column_stack(out), np.array([float(row[0]) for row in rows])


def without_privacy(x, y, draws=4000):
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        hessian = (x.T * (p * (1 - p))) @ x + np.eye(len(beta)) / PRIOR_SD**2
        step = np.linalg.solve(hessian, x.T @ (y - p) - beta / PRIOR_SD**2)
        beta = beta + step
    root, rng, df = np.linalg.cholesky(np.linalg.inv(hessian)), np.random.default_rng(7), 8
    z = rng.standard_normal((draws, len(beta))) / np.sqrt(rng.chisquare(df, draws) / df)[:, None]
    points = beta + z @ root.T
    logs = np.concatenate([(y * (part @ x.T) - np.logaddexp(0, part @ x.T)).sum(1) for part in np.array_split(points, draws // 20)])
    logs += -0.5 * (points**2).sum(1) / PRIOR_SD**2 + (df + len(beta)) / 2 * np.log1p((z**2).sum(1) / df)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ points
    return mean, np.sqrt(weights @ (points - mean) ** 2)


def job(predictors, epsilon, more):
    return (
        f'name = "adult"\nalgorithm = "hmc"\nparties = {json.dumps(list(PARTIES))}\n[model]\nkind = "logistic"\noutcome = "rich"\n'
        f"predictors = {json.dumps(predictors)}\n[columns]\nrich = {{ binary = true }}\nage = {{ min = 17, max = 90 }}\n"
        f"hours = {{ min = 1, max = 99 }}\nmale = {{ binary = true }}\nmarried = {{ binary = true }}\ngain = {{ binary = true }}\n"
        f'education = {{ levels = {json.dumps(LEVELS)} }}\n[prior]\ndefault = "normal(0, {PRIOR_SD})"\n[sampler]\ndraws = 100000\n{more}\n'
        f"[privacy]\nepsilon = {epsilon}\ndelta = {DELTA}\n"
    )


def rehearse(program, folder, seed):
    command = [program, "rehearse", folder / "job.toml", "--json", "--noise-seed", str(seed)]
    for party in PARTIES:
        command += ["--data", folder / f"{party}.csv"]
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return ran.stderr.strip()[-400:]
    result = json.loads(ran.stdout)
    # The figures of an answer that is not adequate stand apart.
    return result | result.get("inadequate", {})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conclave", required=True)
    parser.add_argument("--adult", required=True, type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[8.0])
    parser.add_argument("--parameters", type=int, choices=PREDICTORS, nargs="+", default=sorted(PREDICTORS))
    parser.add_argument("--sampler", default="", help="lines for [sampler]")
    parser.add_argument("--at-once", type=int, default=1)
    arguments = parser.parse_args()
    shards = [list(shard(arguments.adult / f"adult-{party}.csv")) for party in PARTIES]
    rows = [row for part in shards for row in part]
    print("| parameters | epsilon | chains | rounds | planned ESS | least ESS | largest R-hat | error | worst run | sd ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for parameters in arguments.parameters:
        x, y = design(rows, PREDICTORS[parameters])
        mean, sd = without_privacy(x, y)
        for epsilon in arguments.epsilon:
            with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
                folder = pathlib.Path(folder)
                for party, part in zip(PARTIES, shards):
                    with open(folder / f"{party}.csv", "w", newline="") as file:
                        csv.writer(file).writerows([HEADER, *part])
                (folder / "job.toml").write_text(job(PREDICTORS[parameters], epsilon, arguments.sampler))
                runs = list(pool.map(lambda seed: rehearse(arguments.conclave, folder, seed), range(1, arguments.seeds + 1)))
            kept = [run for run in runs if isinstance(run, dict)]
            if not kept:
                print(f"| {parameters + 0} | {epsilon:g} | refused: {runs[0]} |")
                continue
            of = lambda key: np.array([[row[key] for row in run["posterior"]] for run in kept], float)
            errors, median = (of("mean") - mean) / sd, lambda xs: float(np.median(xs))
            each = np.sqrt((errors**2).mean(1))
            print(
                f"| {len(mean)} | {epsilon:g} | {kept[0]['chains']} | {median([run['iterations'] for run in kept]):.0f} | "
                f"{median([run['gradients']['planned_ess'] for run in kept]):.0f} | {median(of('ess_bulk').min(1)):.0f} | {median(of('rhat').max(1)):.3f} | "
                f"{math.sqrt((errors**2).mean()):.3f} | {each.max():.3f} | {(of('sd') / sd).mean():.3f} ({(of('sd') / sd).std():.3f}) |",
                flush=True,
            )


main()
