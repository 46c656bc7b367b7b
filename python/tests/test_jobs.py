"""Jobs, codebooks, accounts and plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import COLUMNS, command

import conclave as cv


def test_a_job_is_its_text(folder: Path, job: cv.Job) -> None:
    assert job.parties == ["a", "b", "c"] and job.parameters == ["intercept", "age", "ward[west]"]
    assert job.columns == COLUMNS and job["privacy"]["epsilon"] == 8.0
    job.write(folder / "job.toml")
    assert cv.Job.read(folder / "job.toml") == job
    with pytest.raises(FileExistsError):
        job.write(folder / "job.toml")
    assert 'algorithm = "auto"' in job.signed and job.signed != ""
    other = job.replace(name="b", privacy={"epsilon": 2.0}, prior={"age": "normal(0, 1)"})
    assert other["privacy"] == {"epsilon": 2.0, "delta": 1e-6} and other["prior"] == {"age": "normal(0, 1)"}
    assert "# Public knowledge" in other.toml and other.replace(prior=None).toml == job.replace(name="b", privacy={"epsilon": 2.0}).toml
    assert "<details>" in job._repr_html_() and "epsilon 8" in repr(job)


def test_every_setting_of_a_new_job_is_written() -> None:
    job = cv.Job.new(
        "died ~ age", "logistic", parties=["a", "b", "c"], epsilon=1.0, delta=1e-7, name="x", columns=COLUMNS,
        priors={"default": "normal(0, 1)"}, records={"a": 5, "b": 6, "c": 7}, algorithm="penalty", sampler={"chains": 2}, aggregation="secure",
    )
    assert (job["prior"], job["plan"]["records"], job["algorithm"], job["sampler"], job["aggregation"]["mode"]) == (
        {"default": "normal(0, 1)"}, {"a": 5, "b": 6, "c": 7}, "penalty", {"chains": 2}, "secure",
    )
    assert job["privacy"]["delta"] == 1e-7


def test_bounds_are_public() -> None:
    for wrong in [(1, 1), (2, 1), (0, float("inf")), (float("nan"), 1)]:
        with pytest.raises(cv.InvalidInput):
            cv.bounds(*wrong)
    for names in [("a",), ("a", "a")]:
        with pytest.raises(cv.InvalidInput):
            cv.levels(*names)
    job = cv.Job.new('died ~ `the "ward"`', "logistic", parties=["a"], epsilon=1.0,
                     columns={"died": cv.binary(), 'the "ward"': cv.levels('a "b"', "c\\d", "é")})
    assert job.columns['the "ward"'] == cv.levels('a "b"', "c\\d", "é")


SCHEMA = {"fields": [
    {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 100}},
    {"name": "died", "type": "boolean"},
    {"name": "ward", "type": "string", "constraints": {"enum": ["east", "west"]}},
    {"name": "weight", "type": "number", "constraints": {"minimum": 0}},
    {"name": "note", "type": "string"},
]}
CSVW = {"@context": "http://www.w3.org/ns/csvw", "tableSchema": {"columns": [
    {"name": "age", "datatype": {"base": "integer", "minimum": "18", "maximum": "100"}},
    {"titles": "died", "datatype": "boolean"},
    {"titles": ["ward"], "datatype": {"base": "string", "format": "east|west"}},
    {"name": "weight", "datatype": {"base": "decimal", "minInclusive": 0}},
    {"name": "note", "datatype": "string"},
]}}
REDCAP = '''"Variable / Field Name","Form Name","Field Type","Field Label","Choices, Calculations, OR Slider Labels","Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max"
age,f,text,Age,,integer,18,100
died,f,yesno,Died,,,,
ward,f,dropdown,Ward,"east, East wing | west, West wing",,,
weight,f,text,Weight,,number,0,
note,f,text,Note,,,,
'''


@pytest.mark.parametrize(("name", "text"), [
    ("schema.json", json.dumps(SCHEMA)),
    ("datapackage.json", json.dumps({"resources": [{"name": "r", "schema": SCHEMA}]})),
    ("metadata.json", json.dumps(CSVW)),
    ("group.json", json.dumps({"tables": [CSVW]})),
    ("dictionary.csv", REDCAP),
])
def test_codebooks_are_public_documents(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    book = cv.codebook(folder / name)
    assert dict(book) == {"age": cv.bounds(18, 100), "died": cv.binary(), "ward": cv.levels("east", "west")}
    with pytest.raises(cv.InvalidInput, match=r"does not declare 'weight'.*no maximum: write 'weight': bounds\(low, high\)"):
        book["weight"]
    assert set(book.undeclared) == {"weight", "note"}
    job = cv.Job.new("died ~ age + ward", "logistic", parties=["a"], epsilon=1.0, columns=book)
    assert job.columns["ward"] == cv.levels("east", "west")
    with pytest.raises(cv.InvalidInput, match="does not declare 'weight'"):
        cv.Job.new("died ~ weight", "logistic", parties=["a"], epsilon=1.0, columns=book)
    both = {**book, "weight": cv.bounds(0, 300)}
    assert "weight" in cv.Job.new("died ~ weight", "logistic", parties=["a"], epsilon=1.0, columns=both).columns


def test_what_is_no_codebook_is_refused(folder: Path) -> None:
    for name, text in [("a.csv", "age,died\n50,1\n"), ("a.json", "[1]"), ("b.json", "{"), ("b.csv", "")]:
        (folder / name).write_text(text)
        with pytest.raises(cv.InvalidInput, match="no codebook"):
            cv.codebook(folder / name)
    with pytest.raises(cv.InvalidInput, match="cannot be read"):
        cv.codebook(folder / "none.json")


def test_accounts_are_those_of_the_command() -> None:
    shown = json.loads(command("account", "--queries", "0.01x4195", "--queries", "0.1x5", "--delta", "1e-6", "--json").stdout)
    assert vars(cv.account([(0.01, 4195), (0.1, 5)], delta=1e-6)) == shown
    assert cv.mu_of(3.0, 1e-6) == json.loads(command("account", "--epsilon", "3", "--delta", "1e-6", "--json").stdout)["mu_budget"]
    words = ["--subsampled", "--probability", "0.01", "--noise-multiplier", "2", "--releases", "100", "--adjacency", "add-remove"]
    shown = json.loads(command("account", *words, "--delta", "1e-6", "--json").stdout)
    assert cv.account_subsampled(probability=0.01, noise_multiplier=2.0, releases=100, adjacency="add-remove", delta=1e-6) == [shown]


def test_a_plan_is_that_of_the_command(folder: Path, job: cv.Job) -> None:
    job.write(folder / "job.toml")
    plan = cv.plan(job)
    assert str(plan) == command("plan", folder / "job.toml").stdout.rstrip()
    assert plan.data == json.loads(command("plan", folder / "job.toml", "--json").stdout)
    assert plan.algorithms.columns[0] == "algorithm" and "<pre>" in plan._repr_html_()
