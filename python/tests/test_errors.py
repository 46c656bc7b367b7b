"""Errors: one class for each stable code, in the words of Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import COLUMNS, frame

import conclave as cv
from conclave import _conclave, errors


def test_every_code_has_one_class() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, cv.ConclaveError) and kind is not cv.ConclaveError]
    assert sorted(kind.code for kind in kinds) == sorted(_conclave.error_codes())
    for kind in kinds:
        error = errors._of_fault(kind.code, "a", "said", "do so")
        assert type(error) is kind
        assert (error.party, error.message, error.remedy, str(error)) == ("a", "said", "do so", "said: do so")
        assert kind.__name__ in cv.__all__ and getattr(cv, kind.__name__) is kind


def test_remedies_name_calls() -> None:
    said = {
        "follow it with `conclave watch 4f-1 --coordinator https://x --identity y`": 'follow it with client.run("4f-1").watch()',
        "`conclave jobs` lists them": "client.jobs() lists them",
        "pass --rehearsal FILE from `conclave rehearse`": "pass rehearsal=conclave.rehearse(job, tables)",
        "--noise-multiplier is 0": "noise_multiplier is 0",
    }
    for text, words in said.items():
        assert errors._in_python(text) == words


def test_errors_are_raised_in_their_class_and_words(folder: Path) -> None:
    job = cv.Job.new("died ~ age + ward", "logistic", parties=["a"], epsilon=8.0, columns=COLUMNS)
    futile = job.replace(privacy={"epsilon": 0.01}, plan={"records": 20})
    tries = [
        (cv.InvalidInput, lambda: cv.plan(job), "plan.records: missing"),
        (cv.InvalidInput, lambda: cv.Job("nmae = 1"), "nmae"),
        (cv.InvalidInput, lambda: cv.Job.new("died ~ agee", "logistic", parties=["a"], epsilon=1.0, columns=COLUMNS), "the nearest is `age`"),
        (cv.InvalidInput, lambda: cv.account([(0.0, 1)], delta=1e-6), "mu is 0"),
        (cv.InvalidInput, lambda: cv.mu_of(3.0, 0.9), "delta is 0.9"),
        (cv.InvalidInput, lambda: cv.account_subsampled(releases=5, delta=1e-6, probability=0.1), "needs noise_multiplier, or sensitivity and noise"),
        (cv.BudgetSpent, lambda: cv.rehearse(futile.replace(algorithm="penalty"), [frame(20, 1)], progress=False), ""),
        (cv.InvalidInput, lambda: cv.Client("https://localhost:1", folder), ""),
    ]
    for kind, call, words in tries:
        with pytest.raises(cv.ConclaveError) as raised:
            call()
        assert type(raised.value) is kind, (raised.value, kind)
        assert words in str(raised.value)
        assert not re.search(r"`conclave |(?<!\w)--\w", str(raised.value)), str(raised.value)
