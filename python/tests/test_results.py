"""Results: arrays, tables, summaries, predictions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import polars
import pytest
import xarray
from conftest import csv_of, rehearsed, same

import conclave as cv


@pytest.fixture(scope="module")
def result(job: cv.Job, frames: dict[str, pandas.DataFrame]) -> cv.Result:
    return cv.rehearse(job, frames, seed=7, progress=False)


def test_a_result_is_that_of_the_command(result: cv.Result, job: cv.Job, frames: dict[str, pandas.DataFrame], folder: Path) -> None:
    job.write(folder / "job.toml")
    files = [csv_of(table, folder / f"{party}.csv") for party, table in frames.items()]
    shown, draws = rehearsed(folder / "job.toml", files, folder / "draws")
    same(result, draws)
    left_out = {"seconds", "draws"}
    assert {k: v for k, v in result.json.items() if k not in left_out} == {k: v for k, v in shown.items() if k not in left_out}
    ours, store = result.to_datatree(), xarray.open_datatree(folder / "draws", engine="zarr", consolidated=False)
    assert set(ours.groups) == set(store.groups)
    for group in ("posterior", "posterior_original", "sample_stats"):
        for name, values in store[group].data_vars.items():
            assert ours[group][name].dims == values.dims == ("chain", "draw")
            assert np.array_equal(ours[group][name].values, values.values), (group, name)


def test_draws_are_in_every_form(result: cv.Result) -> None:
    age = result.posterior["age"]
    assert age.dtype == np.float64 and age.ndim == 2 and not age.flags.writeable
    for table in (result.to_pandas(), result.to_polars().to_pandas(), result.to_arrow().to_pandas()):
        assert list(table.columns) == ["chain", "draw", *result.parameters]
        assert np.array_equal(table["age"], age.reshape(-1)) and table["chain"].iloc[-1] == age.shape[0] - 1
    assert np.array_equal(result.to_pandas(original=True)["age"], result.posterior_original["age"].reshape(-1))
    summary = result.summary()
    assert [row["name"] for row in summary] == result.parameters
    assert np.isclose(summary[1]["mean"], age.mean())
    assert "r" in repr(summary) and "<table>" in summary._repr_html_() and list(summary.to_pandas().columns) == summary.columns
    assert len(result.spending()) == 3 and result.adequate and "<table>" in result._repr_html_()


def test_arviz_reads_the_draws(result: cv.Result) -> None:
    arviz_base = pytest.importorskip("arviz_base")
    made = arviz_base.from_dict({"posterior": result.posterior, "sample_stats": result._statistics(False)})
    ours = result.to_datatree()
    for name, values in made["posterior"].data_vars.items():
        assert np.array_equal(ours["posterior"][name].values, values.values)
    given = result.to_arviz()
    assert np.array_equal(given.posterior["age"].values if hasattr(given, "posterior") else given["posterior"]["age"].values, result.posterior["age"])


def test_predictions_are_those_of_the_draws(result: cv.Result) -> None:
    rows = pandas.DataFrame({"age": [40.0, 80.0], "ward": ["east", "west"]})
    predicted = result.predict(rows, contrast=True)
    original = result.posterior_original
    logit = original["intercept"] + original["age"] * 80 + original["ward[west]"]
    assert np.isclose(predicted.rows[1]["mean"], (1 / (1 + np.exp(-logit))).mean())
    assert predicted.rows[1]["at"] == {"age": 80.0, "ward": "west"} and len(predicted.contrasts) == 1
    assert list(predicted.to_pandas()["ward"]) == ["east", "west"]
    assert result.predict(polars.from_pandas(rows)).data == result.predict(rows).data
    assert "outcome" in result.predict(rows, kind="outcome", seed=1).rows[0]
    assert {row["predictor"] for row in result.predict(rows, average=["age", "ward"]).rows} == {"age", "ward"}
    clamped = result.predict(rows.assign(age=[400.0, 1.0]))
    assert any("outside the declared bounds" in sentence for sentence in clamped.warnings)
    for wrong, words in [(rows[["age"]], "no value for ward"), (rows.assign(ward="north"), "is not a level"), (None, "give rows")]:
        with pytest.raises(cv.InvalidInput, match=words):
            result.predict(wrong)


def test_a_rehearsal_is_an_input_of_a_plan(job: cv.Job, result: cv.Result) -> None:
    plan = cv.plan(job.replace(plan=None), rehearsal=result)
    assert plan.data["algorithms"] and json.loads(json.dumps(plan.data)) == plan.data


def test_concerns_are_named(job: cv.Job, frames: dict[str, pandas.DataFrame]) -> None:
    odd = frames["a"].copy()
    odd.loc[odd.index[:100], "age"] = -99.0
    found = cv.check(odd, job)
    assert any(not concern.grave and "-99" in concern.found and concern.remedy for concern in found)
    grave = cv.check(odd.assign(died=odd["died"] + 1), job)
    assert any(concern.grave and "coded 1 and 2" in str(concern) for concern in grave)
    with pytest.warns(cv.RecordsWarning, match="a: 5.0% of age are -99"):
        cv.rehearse(job, {**frames, "a": odd}, progress=False)
    with pytest.raises(cv.InvalidInput, match="b: .*coded 1 and 2"):
        cv.rehearse(job, {**frames, "b": odd.assign(died=odd["died"] + 1)}, progress=False)
