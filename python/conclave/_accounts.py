"""Accounts of privacy."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import _conclave
from ._rows import Rows


@dataclass(frozen=True)
class Cost:
    """The cost of releases together, and their epsilon at one delta under several accountings."""

    #: The mu of Gaussian differential privacy; squares add up.
    mu: float
    #: Epsilon by Gaussian differential privacy, which ledgers use.
    epsilon_gdp: float
    #: Epsilon by zero-concentrated differential privacy.
    epsilon_zcdp: float
    #: Epsilon by advanced composition; None where it does not apply.
    epsilon_advanced: float | None


def account(releases: Iterable[tuple[float, int]], *, delta: float) -> Cost:
    """Accounts for releases under Gaussian noise.

    Args:
        releases: pairs of mu, the sensitivity over the noise's standard deviation, and the number of such releases.
        delta: the delta of the budget, above 0 and at most 0.5.

    Raises:
        InvalidInput: a mu, a count or a delta out of range.
    """
    return Cost(**json.loads(_conclave.account([(float(mu), int(count)) for mu, count in releases], float(delta))))


def mu_of(epsilon: float, delta: float) -> float:
    """Returns the mu that a budget of (epsilon, delta) buys.

    Raises:
        InvalidInput: an epsilon or a delta out of range.
    """
    return _conclave.mu_of(float(epsilon), float(delta))


def account_subsampled(
    *,
    releases: int,
    delta: float,
    probability: float | None = None,
    batch: float | None = None,
    records: float | None = None,
    noise_multiplier: float | None = None,
    sensitivity: float | None = None,
    noise: float | None = None,
    blocks: int | None = None,
    components: int | None = None,
    reserve: float | None = None,
    adjacency: str | None = None,
) -> Rows:
    """Accounts for blocks of subsampled releases, each of a secret random sample of the units.

    Give `probability`, or `batch` and `records`; and `noise_multiplier`, or `sensitivity` and `noise`. Returns one row of
    figures, among them `mu`, `epsilon` and `mu_unsampled`, the cost of the same noise on all units.

    Raises:
        InvalidInput: arguments that are missing or out of range.
    """
    options: dict[str, Any] = {
        "releases": releases, "probability": probability, "batch": batch, "records": records, "noise_multiplier": noise_multiplier,
        "sensitivity": sensitivity, "noise": noise, "blocks": blocks, "components": components, "reserve": reserve, "adjacency": adjacency,
    }
    given = {key: value for key, value in options.items() if value is not None}
    return Rows([json.loads(_conclave.account_subsampled(json.dumps(given), float(delta)))])
