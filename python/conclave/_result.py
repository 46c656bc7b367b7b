"""Results: the posterior of a rehearsal, of a fetched job, or of a refit."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from . import _conclave
from ._rows import Rows
from .errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import pandas
    import polars
    import pyarrow
    import xarray


#: The figures of a parameter that a table shows first.
_FIRST = ("name", "mean", "sd", "q5", "median", "q95", "ess_bulk", "ess_tail", "rhat")


class Result:
    """The result of a run: its draws, diagnostics, and what each party has spent.

    Draws are on the scale of the priors, on which numeric columns are coded to [-1, 1] by their bounds, or in the data's own
    units ("original").
    """

    def __init__(self, run: _conclave.Run) -> None:
        self._run = run
        self._json = run.json
        #: The run's object, as `conclave summary --json` prints it.
        self.json: dict[str, Any] = json.loads(run.json)

    @cached_property
    def job(self) -> Any:
        """The job as it ran, a `Job`."""
        from ._job import Job

        return Job(self._run.job)

    @property
    def data(self) -> dict[str, Any]:
        """The run's object, the same as `json`."""
        return self.json

    @property
    def parameters(self) -> list[str]:
        """The parameters' names."""
        return self._run.parameters

    @cached_property
    def posterior(self) -> dict[str, np.ndarray[Any, Any]]:
        """The draws by parameter, on the scale of the priors: arrays of float64 of shape (chain, draw). Read-only."""
        return self._arrays(self._run.posterior())

    @cached_property
    def posterior_original(self) -> dict[str, np.ndarray[Any, Any]]:
        """The draws by parameter in the data's own units: arrays of float64 of shape (chain, draw). Read-only."""
        draws = self._run.original()
        return {} if draws is None else self._arrays(draws)

    def _arrays(self, draws: bytes) -> dict[str, np.ndarray[Any, Any]]:
        import numpy as np

        names = self._run.parameters
        values = np.frombuffer(draws, dtype=np.float64).reshape(len(names), self._run.chains, -1)
        return dict(zip(names, values))

    def _statistics(self, warmup: bool) -> dict[str, np.ndarray[Any, Any]]:
        import numpy as np

        accepted, log_alpha, iteration = self._run.statistics(warmup)
        shape = (self._run.chains, -1) if accepted else (self._run.chains, 0)
        return {
            "accepted": np.frombuffer(accepted, dtype=np.bool_).reshape(shape),
            "log_alpha": np.frombuffer(log_alpha, dtype=np.float64).reshape(shape),
            "iteration": np.frombuffer(iteration, dtype=np.int64).reshape(shape),
        }

    @property
    def warnings(self) -> list[str]:
        """Warnings on the result and on its privacy, as sentences."""
        return [*self.json.get("warnings", []), *self.json.get("privacy_warnings", [])]

    @property
    def adequate(self) -> bool:
        """False if no interval is shown, since none would be reliable; `json["adequacy"]` has the reasons."""
        return bool((self.json.get("adequacy") or {}).get("adequate", True))

    def summary(self, *, original: bool = False) -> Rows:
        """Returns one row for each parameter: mean, sd, quantiles, effective sample sizes, R-hat.

        Args:
            original: in the data's own units instead of on the scale of the priors.
        """
        rows = self.json.get("posterior_original" if original else "posterior") or []
        return Rows({**{key: row[key] for key in _FIRST if key in row}, **row} for row in rows)

    def spending(self) -> Rows:
        """Returns one row for each party: its records, and the privacy budget that it spent on the run."""
        rows = self.json.get("parties") or []
        return Rows({"name": row.get("name"), "records": row.get("records"), **row} for row in rows)

    def _groups(self) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
        groups = {"posterior": self.posterior, "sample_stats": self._statistics(False)}
        if self.posterior_original:
            groups["posterior_original"] = self.posterior_original
        groups["warmup_posterior"] = self._arrays(self._run.warmup())
        groups["warmup_sample_stats"] = self._statistics(True)
        return groups

    def _attributes(self) -> dict[str, Any]:
        return {"created_by": self._run.created_by, "algorithm": self.json.get("algorithm", ""), "job": self.json.get("job", "")}

    def to_datatree(self) -> xarray.DataTree:
        """Returns the draws as an xarray.DataTree in ArviZ's layout, with the dimensions chain and draw. Needs xarray."""
        import numpy as np
        import xarray

        def dataset(values: dict[str, np.ndarray[Any, Any]]) -> xarray.Dataset:
            chains, draws = next(iter(values.values())).shape
            variables = {name: (("chain", "draw"), array) for name, array in values.items()}
            return xarray.Dataset(variables, {"chain": np.arange(chains), "draw": np.arange(draws)}, self._attributes())

        return xarray.DataTree.from_dict({name: dataset(values) for name, values in self._groups().items()})

    def to_arviz(self) -> Any:
        """Returns the draws for ArviZ: an InferenceData of ArviZ 0.x, or the DataTree that ArviZ 1.x takes."""
        import importlib.util

        if importlib.util.find_spec("arviz") is not None:
            import arviz

            if hasattr(arviz, "InferenceData"):
                groups = self._groups()
                has_warmup = groups["warmup_sample_stats"]["accepted"].size > 0
                return arviz.from_dict(
                    posterior=groups["posterior"],
                    sample_stats=groups["sample_stats"],
                    warmup_posterior=groups["warmup_posterior"] if has_warmup else None,
                    warmup_sample_stats=groups["warmup_sample_stats"] if has_warmup else None,
                    save_warmup=has_warmup,
                    attrs=self._attributes(),
                )
        return self.to_datatree()

    def _table(self, original: bool) -> dict[str, np.ndarray[Any, Any]]:
        import numpy as np

        values = self.posterior_original if original else self.posterior
        if not values:
            raise InvalidInput("the run has no draws in the data's own units")
        chains, draws = next(iter(values.values())).shape
        places = {"chain": np.repeat(np.arange(chains), draws), "draw": np.tile(np.arange(draws), chains)}
        return {**places, **{name: array.reshape(-1) for name, array in values.items()}}

    def to_pandas(self, *, original: bool = False) -> pandas.DataFrame:
        """Returns the draws as a pandas.DataFrame: a row for each chain and draw, a column for each parameter."""
        import pandas

        return pandas.DataFrame(self._table(original))

    def to_polars(self, *, original: bool = False) -> polars.DataFrame:
        """Returns the draws as a polars.DataFrame: a row for each chain and draw, a column for each parameter."""
        import polars

        return polars.DataFrame(self._table(original))

    def to_arrow(self, *, original: bool = False) -> pyarrow.Table:
        """Returns the draws as a pyarrow.Table: a row for each chain and draw, a column for each parameter."""
        import pyarrow

        return pyarrow.table(self._table(original))

    def plot(self, kind: str = "forest", *, original: bool = False, **options: Any) -> Any:
        """Plots the draws by ArviZ, and returns what ArviZ returns.

        Args:
            kind: the end of a name among ArviZ's plots: "forest", "trace", "pair", "posterior", "rank", ….
            original: in the data's own units instead of on the scale of the priors.
            options: passed to ArviZ, such as var_names.
        """
        import importlib

        values = self.posterior_original if original else self.posterior
        for module in ("arviz", "arviz_plots"):
            try:
                plots = importlib.import_module(module)
            except ImportError:
                continue
            if hasattr(plots, f"plot_{kind}"):
                if hasattr(plots, "InferenceData"):
                    return getattr(plots, f"plot_{kind}")(plots.from_dict(posterior=values), **options)
                tree = self.to_datatree()
                if original:
                    tree["posterior"] = tree["posterior_original"]
                return getattr(plots, f"plot_{kind}")(tree, **options)
        raise InvalidInput(f"ArviZ has no plot_{kind}, or is not installed", remedy="install arviz")

    def predict(
        self,
        table: Any = None,
        kind: Literal["response", "outcome"] = "response",
        *,
        party: str | None = None,
        new_party: bool = False,
        times: Sequence[float] = (),
        contrast: bool = False,
        average: Sequence[str] = (),
        interval: float = 0.9,
        seed: int | None = None,
    ) -> Prediction:
        """Predicts at rows of covariates from the draws. No party is asked.

        Args:
            table: the covariates, in the data's own units: a row for each prediction, a column for each predictor. Public or
                made-up rows. None for a model without predictors.
            kind: "response" for the expected outcome of such records; "outcome" adds the interval of a single new record's.
            party, new_party: in a job with parameters by party, predict at a party of it, or at a party outside it.
            times: for survival models, the times at which survival is predicted.
            contrast: compare each row with the first.
            average: average the effects of these predictors over the rows instead.
            interval: the level of the equal-tailed intervals.
            seed: the seed of drawn outcomes and of a new party's parameters; by default the job's.

        Raises:
            InvalidInput: a table that does not fit.
            InternalError: an answer that is not adequate: nothing is predicted from it.
        """
        if kind not in ("response", "outcome"):
            raise InvalidInput(f"kind={kind!r}: it is \"response\" or \"outcome\"")
        options = {
            "party": party, "new_party": new_party, "times": list(times), "outcome": kind == "outcome", "contrast": contrast,
            "average": list(average), "interval": interval, "seed": seed,
        }
        draws, chains = self._run.posterior(), self._run.chains
        parameters = len(self._run.parameters)
        shape = (parameters, chains, len(draws) // 8 // max(parameters * chains, 1))
        return Prediction(json.loads(_conclave.predict(self._run.job, self._json, draws, shape, json.dumps(options), table)))

    def __repr__(self) -> str:
        return f"<Result of job {self.json.get('job')}: {len(self.parameters)} values, {self._run.chains} chains>\n{self.summary()!r}"

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>! {html.escape(sentence)}</p>" for sentence in self.warnings)
        adequacy = self.json.get("adequacy") or {}
        if not self.adequate:
            reasons = "; ".join(adequacy.get("reasons", []))
            return f"<p>No adequate answer: {html.escape(reasons)}</p>{sentences}{self.spending()._repr_html_()}"
        return f"{self.summary()._repr_html_()}{self.spending()._repr_html_()}{sentences}"


class Prediction:
    """Predictions, each with its mean over the draws and an equal-tailed interval."""

    def __init__(self, data: dict[str, Any]) -> None:
        #: The object that `conclave predict --json` prints.
        self.data = data

    @property
    def rows(self) -> Rows:
        """One row for each prediction or average effect: mean, sd, low, median, high, and the covariates under "at"."""
        return Rows(self.data.get("predictions") or self.data.get("average_effects") or [])

    @property
    def contrasts(self) -> Rows:
        """One row for each comparison with the first row."""
        return Rows(self.data.get("contrasts") or [])

    @property
    def warnings(self) -> list[str]:
        """Warnings: values outside the declared bounds, few draws, those of the result."""
        return [*self.data.get("warnings", []), *self.data.get("result_warnings", [])]

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the rows as a pandas.DataFrame, with a column for each covariate."""
        return Rows({**row.get("at", {}), **{key: value for key, value in row.items() if key != "at"}} for row in self.rows).to_pandas()

    def __repr__(self) -> str:
        return repr(self.rows)

    def _repr_html_(self) -> str:
        return self.rows._repr_html_() + "".join(f"<p>! {html.escape(sentence)}</p>" for sentence in self.warnings)
