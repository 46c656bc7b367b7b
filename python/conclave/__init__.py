"""Conclave: one Bayesian posterior from several data owners who never reveal their records.

    import conclave as cv

    job = cv.Job.new("died ~ age + ward", "logistic", parties=["a", "b", "c"], epsilon=3.0,
                     columns={"died": cv.binary(), "age": cv.bounds(0, 100), "ward": cv.levels("east", "west")})
    cv.rehearse(job, {"a": df_a, "b": df_b, "c": df_c}, seed=1).summary()
    cv.Client("https://coordinator.example", "identity/").submit(job).watch().result().to_arviz()
"""

from . import errors
from ._accounts import Cost, account, account_subsampled, mu_of
from ._aio import AsyncClient, AsyncRun
from ._client import Client, Report, Run, Runs
from ._columns import Codebook, Column, binary, bounds, codebook, levels
from ._demo import Demo, demo
from ._job import Job
from ._plans import Plan, plan
from ._rehearsal import Concern, RecordsWarning, check, rehearse
from ._result import Prediction, Result
from ._rows import Rows
from .errors import (
    BudgetSpent,
    ConclaveError,
    Conflict,
    ConsentRevoked,
    InternalError,
    Interrupted,
    InvalidInput,
    NotFound,
    PolicyRefused,
    Unauthenticated,
    Unreachable,
)

__version__ = "0.1.0"

__all__ = [
    "AsyncClient", "AsyncRun", "BudgetSpent", "Client", "Codebook", "Column", "ConclaveError", "Concern", "Conflict", "ConsentRevoked",
    "Cost", "Demo", "InternalError", "Interrupted", "InvalidInput", "Job", "NotFound", "Plan", "PolicyRefused", "Prediction",
    "RecordsWarning", "Report", "Result", "Rows", "Run", "Runs", "Unauthenticated", "Unreachable", "account", "account_subsampled",
    "binary", "bounds", "check", "codebook", "demo", "errors", "levels", "mu_of", "plan", "rehearse",
]
