"""Runs of `conclave rehearse` on simulated data, and their scores."""

import array
import concurrent.futures
import csv
import hashlib
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile
import time


class Skipped(Exception):
    """A page that can't be built: its algorithm or its data is missing."""


class Refused(Exception):
    """A job that the program refuses, with its reason."""


class Program:
    """The program, with the total seconds of its runs. With `kept`, a folder, results of earlier runs of the same program on the same job, files and seed are
    read from there."""

    def __init__(self, path, workers, kept=None):
        self.path, self.workers, self.seconds, self.kept = str(pathlib.Path(path).resolve()), workers, 0.0, kept

    def account(self, *words):
        """Returns the output of `conclave account` as an object."""
        ran = subprocess.run([self.path, "account", *map(str, words), "--json"], capture_output=True, text=True, check=True)
        return json.loads(ran.stdout)

    def rehearse(self, job, files, seed, anyway=True, drawn=()):
        """Runs a job and returns its object. `files` are CSV files, one per party; `anyway` also runs jobs without an expected answer. The object
        includes the draws of the parameters `drawn` in the data's units, `draws[name][chain]`."""
        if self.kept is None:
            return self.run(job, files, seed, anyway, drawn)
        place = self.kept / f"{fingerprint(job, files, seed, anyway, drawn)}.json"
        if not place.exists():
            try:
                found = self.run(job, files, seed, anyway, drawn)
            except Refused as refused:
                found = {"refused": str(refused)}
            partial = place.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(found))
            partial.rename(place)
        found = json.loads(place.read_text())
        if "refused" in found:
            raise Refused(found["refused"])
        return found

    def run(self, job, files, seed, anyway, drawn):
        """Runs `conclave rehearse`; see `rehearse`."""
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "job.toml"
            text.write_text(job)
            command = [self.path, "rehearse", str(text), "--json", "--noise-seed", str(seed)]
            if anyway:
                command.append("--anyway")
            for file in files:
                command += ["--data", str(file)]
            store = pathlib.Path(folder) / "draws.zarr"
            if drawn:
                command += ["--out", str(store)]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                words = (ran.stderr.strip() or ran.stdout.strip()).splitlines()
                reason = words[-1] if words else "no reason given"
                if "unknown algorithm" in ran.stderr + ran.stdout or "does not run yet" in ran.stderr + ran.stdout:
                    raise Skipped(reason)
                raise Refused(reason)
            result = json.loads(ran.stdout)
            # The figures of an answer that is not adequate stand apart.
            result |= result.get("inadequate", {})
            if drawn:
                result["draws"] = {name: draws(store / "posterior_original" / name) for name in drawn}
        return result

    def all(self, tasks):
        """Runs tasks `(job, files, seed)`, optionally followed by `anyway` and `drawn`; returns for each an object or the `Refused` raised."""
        began = time.monotonic()

        def one(task):
            try:
                return self.rehearse(*task)
            except Refused as refused:
                return refused

        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            found = list(pool.map(one, tasks))
        self.seconds += time.monotonic() - began
        return found


def fingerprint(job, files, seed, anyway, drawn):
    """Returns the name of a run: its job, the contents of its files, its seed and its options."""
    digest = hashlib.sha256(json.dumps([job, seed, anyway, list(drawn)]).encode())
    for file in files:
        digest.update(hashlib.sha256(pathlib.Path(file).read_bytes()).digest())
    return digest.hexdigest()[:32]


def draws(path):
    """Reads a Zarr array with a chain per row, stored as bytes in chunks of one row."""
    metadata = json.loads((path / "zarr.json").read_text())
    if [codec["name"] for codec in metadata["codecs"]] != ["bytes"] or metadata["chunk_grid"]["configuration"]["chunk_shape"][0] != 1:
        raise ValueError(f"{path}: unsupported chunks")
    chains, length = metadata["shape"]
    columns = metadata["chunk_grid"]["configuration"]["chunk_shape"][1]

    def chain(row):
        values = array.array("d")
        for chunk in range(-(-length // columns)):
            values.frombytes((path / "c" / str(row) / str(chunk)).read_bytes())
        return list(values[:length])

    return [chain(row) for row in range(chains)]


def write(folder, name, header, rows):
    """Writes a CSV file."""
    path = pathlib.Path(folder) / name
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def rows_of(result, original=False):
    return {row["name"]: row for row in result["posterior_original" if original else "posterior"]}


class Score:
    """The scores of several runs of one job against the exact posterior, `{name: (mean, sd)}`."""

    def __init__(self, results, exact, original=False):
        self.refused = next((str(result) for result in results if isinstance(result, Refused)), None)
        done = [result for result in results if not isinstance(result, Refused)]
        self.runs = len(done)
        if not done:
            return
        rows = [rows_of(result, original) for result in done]
        squares = [[((row[name]["mean"] - mean) / sd) ** 2 for name, (mean, sd) in exact.items()] for row in rows]
        self.errors = [math.sqrt(statistics.fmean(run)) for run in squares]
        self.error = math.sqrt(statistics.fmean(itertools.chain(*squares)))
        self.sd_ratio = statistics.median(row[name]["sd"] / sd for row in rows for name, (_, sd) in exact.items())
        least = lambda key, row: min((row[name].get(key) or 0.0) for name in exact)
        self.ess = statistics.median(least("ess_bulk", row) for row in rows)
        self.rhat = max((row[name].get("rhat") or 0.0) for row in rows for name in exact)
        self.rounds = statistics.median(result["iterations"] for result in done)
        self.acceptance = statistics.median(result.get("acceptance_rate") or 0.0 for result in done)
        self.spent = max(party["epsilon_spent"] for result in done for party in result["parties"])
        self.seconds = statistics.median(result["seconds"] for result in done)

    def cells(self):
        if not self.runs:
            return ["refused", "–", "–", "–", "–", "–"]
        rhat = f"{self.rhat:.2f}" if self.rhat else "–"
        return [f"{self.spent:.2f}", f"{self.error:.2f}", f"{self.sd_ratio:.2f}", f"{self.ess:,.0f}", rhat, f"{self.rounds:,.0f}"]


HEADINGS = ["epsilon spent", "error", "sd ratio", "ESS", "R-hat", "rounds"]
LEGEND = (
    "*epsilon spent*: by any owner, in any run. *error*: root mean square over parameters and runs of the posterior mean less the exact one without privacy,\n"
    "in posterior sds. *sd ratio*: the median of sd over the exact sd; for algorithms that release once it is above 1 by design, as the noise is in the\n"
    "posterior. *ESS*: the least bulk effective sample size of a parameter, all chains, median of the runs. *R-hat*: the greatest split R-hat. *rounds*:\n"
    "messages to every owner. Runs of a cell differ in the noise; proposals and decisions follow the job's one seed.\n"
)


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def workers():
    return max(1, os.cpu_count() or 1)
