"""Tables that other libraries hand over: the same draws, bit for bit, as the command line's."""

from __future__ import annotations

import datetime
import decimal
import gc
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from conftest import COLUMNS, EXAMPLES, READERS, csv_of, frame, rehearsed, same

import conclave as cv

#: A shorter run of each example: the same family, priors and columns.
JOBS = sorted(path.name for path in EXAMPLES.glob("*.toml"))


def shortened(name: str) -> cv.Job:
    job = cv.Job.read(EXAMPLES / name)
    algorithm = job["algorithm"]
    return job if algorithm == "auto" else job.replace(sampler={"draws": 60, "warmup": 10, "chains": 2})


@pytest.mark.parametrize("name", JOBS)
def test_every_example_has_the_same_draws(name: str, folder: Path) -> None:
    job = shortened(name)
    file = folder / "job.toml"
    job.write(file)
    data = [EXAMPLES / "data" / f"{party}.csv" for party in job.parties]
    shown, draws = rehearsed(file, data, folder / "draws", "--anyway")
    for library, read in READERS.items():
        result = cv.rehearse(job, [read(path) for path in data], seed=7, anyway=True, progress=False)
        same(result, draws)
        assert result.json["posterior"] == shown["posterior"], library
        assert result.json["parties"] == shown["parties"], library


@pytest.fixture(scope="module")
def incomplete() -> cv.Job:
    job = cv.Job.new("died ~ age + ward", "logistic", parties=["a", "b"], epsilon=8.0, columns=COLUMNS, records=1000)
    return job.replace(model={"incomplete_rows": True})


def test_nulls_are_inert_rows(incomplete: cv.Job, folder: Path) -> None:
    tables = [frame(1000, 1), frame(1000, 2)]
    tables[0].loc[[3, 500], "age"] = np.nan
    tables[0].loc[[4, 7], "ward"] = None
    tables[1].loc[0, "ward"] = ""
    incomplete.write(folder / "job.toml")
    files = [csv_of(table, folder / f"{at}.csv") for at, table in enumerate(tables)]
    _, draws = rehearsed(folder / "job.toml", files, folder / "draws", "--drop-bad-rows")
    for handed in (tables, [polars.from_pandas(t) for t in tables], [pyarrow.Table.from_pandas(t) for t in tables]):
        same(cv.rehearse(incomplete, handed, seed=7, drop_bad_rows=True, progress=False), draws)
    with pytest.raises(cv.InvalidInput, match=r"a: row 3 \(counted from 0\), column \"age\": the value is missing.*drop_bad_rows=True"):
        cv.rehearse(incomplete, tables, progress=False)


def test_every_form_of_a_table_has_the_same_draws(folder: Path) -> None:
    job = cv.Job.new("died ~ age + ward", "logistic", parties=["a"], epsilon=8.0, columns=COLUMNS, records=1000)
    plain = frame(1000, 3)
    plain["age"] = plain["age"].round(2)
    job.write(folder / "job.toml")
    _, draws = rehearsed(folder / "job.toml", [csv_of(plain, folder / "a.csv")], folder / "draws")
    lazy = polars.from_pandas(plain)
    table = pyarrow.Table.from_pandas(plain)
    longer = pandas.concat([plain.iloc[:10], plain, plain.iloc[:5]], ignore_index=True)
    ages = pyarrow.array([decimal.Decimal(f"{age:.2f}") for age in plain["age"]], pyarrow.decimal128(10, 2))
    forms = {
        "categories": plain.astype({"ward": pandas.CategoricalDtype(["never", "west", "east"])}),
        "polars categories": lazy.with_columns(polars.col("ward").cast(polars.Categorical)),
        "polars enum": lazy.with_columns(polars.col("ward").cast(polars.Enum(["west", "east"]))),
        "booleans": plain.astype({"died": bool}),
        "small integers": plain.astype({"died": "int8"}),
        "unsigned": lazy.with_columns(polars.col("died").cast(polars.UInt64)),
        "nullable": plain.astype({"died": "Int64", "age": "Float64"}),
        "chunks": pyarrow.concat_tables([table.slice(0, 300), table.slice(300, 0), table.slice(300)]),
        "polars chunks": polars.concat([lazy[:100], lazy[100:]], rechunk=False),
        "a slice": pyarrow.Table.from_pandas(longer).slice(10, 1000),
        "a polars slice": polars.from_pandas(longer)[10:1010],
        "empty batches": pyarrow.Table.from_batches(
            [b for batch in table.to_batches(max_chunksize=400) for b in (batch.slice(0, 0), batch)]
        ),
        "dictionaries by chunk": pyarrow.concat_tables([table.slice(0, 1).set_column(2, "ward", table["ward"].slice(0, 1).dictionary_encode()),
                                                        table.slice(1).set_column(2, "ward", table["ward"].slice(1).dictionary_encode())]),
        "large strings": table.set_column(2, "ward", table["ward"].cast(pyarrow.large_string())),
        "string views": table.set_column(2, "ward", table["ward"].combine_chunks().cast(pyarrow.string_view())),
        "decimals": table.set_column(1, "age", ages),
        "blanks": plain.assign(ward=" " + plain["ward"] + " "),
        "more columns": plain.assign(when=pandas.Timestamp("2026-01-01"), other=1.5)[["other", "ward", "when", "age", "died"]],
        "a record batch reader": table.to_reader(),
    }
    for form, handed in forms.items():
        result = cv.rehearse(job, [handed], seed=7, progress=False)
        try:
            same(result, draws)
        except AssertionError as error:
            raise AssertionError(form) from error


def test_a_stream_is_read_once(job: cv.Job) -> None:
    table = pyarrow.Table.from_pandas(frame(100, 1))
    one = cv.Job.new("died ~ age + ward", "logistic", parties=["a"], epsilon=8.0, columns=COLUMNS, records=100)
    capsule = table.__arrow_c_stream__()
    cv.check(capsule, one)
    with pytest.raises(cv.InvalidInput, match="read before"):
        cv.check(capsule, one)


def test_what_is_no_table_is_refused(job: cv.Job) -> None:
    table = frame(50, 1)
    one = cv.Job.new("died ~ age + ward", "logistic", parties=["a"], epsilon=8.0, columns=COLUMNS, records=100)
    dates = table.assign(age=datetime.date(2026, 1, 1))
    for handed, words in [
        (dates, 'column "age" holds dates or times'),
        (table.assign(age=pandas.Timestamp("2026-01-01")), 'column "age" holds dates or times'),
        (table.assign(age=pandas.Timedelta(days=1)), 'column "age" holds dates or times'),
        (table.rename(columns={"age": "Age"}), 'a: has no column "age"; the nearest is "Age"'),
        (table.assign(age="old"), 'holds texts in column "age"'),
        (table.iloc[:0], "no rows"),
        ([1, 2], "list is no table"),
        (pyarrow.table([table["age"], table["age"], table["died"], table["ward"]], names=["age", "age", "died", "ward"]), "twice"),
        (pyarrow.Table.from_pandas(table).set_column(1, "age", pyarrow.array([[1.0]] * 50)), 'column "age" is of type List'),
    ]:
        with pytest.raises(cv.InvalidInput) as error:
            cv.rehearse(one, [handed], progress=False)
        assert words in str(error.value)
    with pytest.raises(cv.InvalidInput, match="no table for b, c; d is no party"):
        cv.rehearse(job, {"a": table, "d": table})
    with pytest.raises(cv.InvalidInput, match="2 tables for 3 parties"):
        cv.rehearse(job, [table, table])


def test_a_table_may_go_while_it_is_lent(job: cv.Job, frames: dict[str, pandas.DataFrame]) -> None:
    expected = cv.rehearse(job, frames, seed=7, progress=False)

    class Gone:
        def __init__(self, table: pandas.DataFrame) -> None:
            self.table = polars.from_pandas(table)

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            capsule = self.table.__arrow_c_stream__()
            del self.table
            gc.collect()
            return capsule

    result = cv.rehearse(job, {party: Gone(table) for party, table in frames.items()}, seed=7, progress=False)
    same(result, expected.posterior)


MEMORY = """
import sys
import numpy as np, polars, conclave as cv
names = [f"x{at}" for at in range(9)]
table = polars.DataFrame({name: np.random.default_rng(at).uniform(0, 1, 1_000_000) for at, name in enumerate(names)})
table = table.with_columns(y=(polars.col("x0") > 0.5).cast(polars.Float64) * (polars.col("x1") > 0.1))
job = cv.Job.new("y ~ " + " + ".join(names), "logistic", parties=["a"], epsilon=8.0, records=1_000_000,
                 columns={"y": cv.binary(), **{name: cv.bounds(0, 1) for name in names}})
def memory(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) / 1000
small = cv.Job.new("y ~ x0", "logistic", parties=["a"], epsilon=8.0, records=100, columns={"y": cv.binary(), "x0": cv.bounds(0, 1)})
cv.rehearse(small, [table[:1000]], progress=False, anyway=True)
import gc; gc.collect()
# From here on the peak is that of what follows.
open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
import warnings; warnings.simplefilter("ignore")
if sys.argv[1] == "hand":
    cv.check(table, job)
else:
    cv.rehearse(job, [table], seed=1, progress=False)
print(memory("VmHWM") - before)
"""


@pytest.mark.parametrize(("what", "most"), [("hand", 5.0), ("rehearse", 100.0)])
def test_a_million_records_take_little_memory(what: str, most: float) -> None:
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", MEMORY, what], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    print(f"{what}: {float(done.stdout):.1f} MB above the table")
    assert float(done.stdout) <= most
