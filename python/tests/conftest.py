"""Records and jobs of the tests."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.csv
import pytest

import conclave as cv

ROOT = Path(os.environ.get("CONCLAVE_ROOT") or Path(__file__).resolve().parents[2])
EXAMPLES = ROOT / "examples"
#: The command line: the program of the build if one is named, else that of the package.
PROGRAM = [os.environ["CONCLAVE_PROGRAM"]] if os.environ.get("CONCLAVE_PROGRAM") else [sys.executable, "-m", "conclave"]

#: How each library reads a file of records.
READERS = {
    "pandas": pandas.read_csv,
    "polars": polars.read_csv,
    "pyarrow": pyarrow.csv.read_csv,
}


# Seconds after which a call counts as one that hangs: how long it takes is printed, since a loaded machine is slow.
HANGS = 60.0


def command(*words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs the command line."""
    done = subprocess.run([*PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert not check or done.returncode in (0, 3), done.stderr
    return done


def rehearsed(job: Path, files: list[Path], out: Path, *more: str) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Rehearses by the command line: the object, and the draws of its store."""
    import xarray

    data = [word for file in files for word in ("--data", str(file))]
    done = command("rehearse", job, *data, "--noise-seed", "7", "--json", "--out", out, *more)
    tree = xarray.open_datatree(out, engine="zarr", consolidated=False)
    # A store's folders are the parameters' names, percent-encoded.
    draws = {urllib.parse.unquote(str(name)): np.asarray(values) for name, values in tree["posterior"].data_vars.items()}
    return json.loads(done.stdout), draws


def same(result: cv.Result, draws: dict[str, np.ndarray[Any, Any]]) -> None:
    """Asserts that all draws are equal, bit for bit."""
    assert sorted(result.posterior) == sorted(draws)
    for name, values in draws.items():
        assert np.array_equal(result.posterior[name].view(np.int64), values.view(np.int64)), name


COLUMNS = {"died": cv.binary(), "age": cv.bounds(0, 100), "ward": cv.levels("east", "west")}


def frame(rows: int, seed: int) -> pandas.DataFrame:
    """Made-up records of one party."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 90, rows)
    ward = rng.choice(["east", "west"], rows)
    risk = 1 / (1 + np.exp(-(-1 + 0.02 * (age - 50) + 0.5 * (ward == "west"))))
    return pandas.DataFrame({"died": rng.binomial(1, risk), "age": age, "ward": ward})


@pytest.fixture(scope="session")
def job() -> cv.Job:
    return cv.Job.new("died ~ age + ward", "logistic", parties=["a", "b", "c"], epsilon=8.0, columns=COLUMNS, records=2000)


@pytest.fixture(scope="session")
def frames() -> dict[str, pandas.DataFrame]:
    return {party: frame(2000, seed) for seed, party in enumerate(["a", "b", "c"])}


@pytest.fixture(scope="session")
def slow_job() -> cv.Job:
    """A job whose rehearsal takes longer than a test waits."""
    return cv.Job.new(
        "died ~ age + ward", "logistic", parties=["a", "b", "c"], epsilon=60.0, columns=COLUMNS, algorithm="penalty",
        sampler={"chains": 4, "draws": 100_000, "warmup": 10},
    )


@pytest.fixture(scope="session")
def demo() -> Iterator[cv.Demo]:
    with cv.demo(rows=2000, epsilon=10.0) as running:
        yield running


@pytest.fixture(scope="session")
def client(demo: cv.Demo) -> cv.Client:
    return demo.client()


@pytest.fixture(scope="session")
def long(demo: cv.Demo) -> cv.Job:
    """A job of many rounds."""
    return cv.Job.read(demo.folder / "job.toml").replace(
        name="long", algorithm="penalty", privacy={"epsilon": 4.0}, sampler={"chains": 1, "draws": 100_000, "warmup": 5, "force": True}, plan=None
    )


def csv_of(table: pandas.DataFrame, path: Path) -> Path:
    """Writes a table with every digit."""
    text = io.StringIO()
    table.to_csv(text, index=False)
    path.write_text(text.getvalue())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)
