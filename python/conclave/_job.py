"""Jobs: the request to the data owners, as the text that an analyst signs."""

from __future__ import annotations

import html
import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from . import _conclave
from ._columns import Codebook, Column, _quoted, binary, bounds, levels
from .errors import InvalidInput


class Job:
    """A job: its TOML text. Fields are views of the text, and nothing but the text is signed.

    Args:
        toml: the text of a job file.

    Raises:
        InvalidInput: a text that is no job; the message names the key.
    """

    def __init__(self, toml: str) -> None:
        self._toml = toml
        self._about: dict[str, Any] = json.loads(_conclave.describe(toml))

    @classmethod
    def read(cls, path: str | Path) -> Job:
        """Reads a job file.

        Raises:
            InvalidInput: a file that cannot be read, or is no job.
        """
        try:
            return cls(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read: {error}") from None

    @classmethod
    def new(
        cls,
        formula: str,
        family: str,
        *,
        parties: Sequence[str],
        columns: Mapping[str, Column],
        epsilon: float,
        delta: float = 1e-6,
        name: str = "study",
        priors: Mapping[str, str] | None = None,
        records: int | Sequence[int] | Mapping[str, int] | None = None,
        algorithm: str | None = None,
        sampler: Mapping[str, Any] | None = None,
        aggregation: str | Mapping[str, Any] | None = None,
        df: float | None = None,
    ) -> Job:
        """Writes a job from a regression formula. It takes no data, so no bound can come from records.

        Args:
            formula: outcome and terms as in R, such as "died ~ age * ward + (1 | party)".
            family: "logistic", "linear", "poisson", "negative_binomial" or "student_t".
            parties: the data owners' names.
            columns: each column's public declaration, by `bounds`, `binary`, `levels` or `codebook`.
            epsilon, delta: the privacy budget of the job at each owner.
            name: the job's name.
            priors: densities by parameter, or for all others as "default", such as {"age": "normal(0, 1)"}.
            records: your estimate of the records, of each party or by party, which `plan` needs.
            algorithm: the algorithm's name; by default "auto".
            sampler: settings of the sampler, such as {"chains": 4, "draws": 2000}.
            aggregation: "secure" for masked answers, or the keys of the table, such as {"mode": "secure", "colluders": 1}.
            df: the degrees of freedom of "student_t".

        Raises:
            InvalidInput: a formula or a declaration that does not fit; the message shows the place.
        """
        each = records if isinstance(records, int) else None
        parts = {
            "name": name, "parties": list(parties), "formula": formula, "family": family, "df": df,
            "epsilon": float(epsilon), "delta": float(delta), "records": each,
        }
        declared = {key: columns[key] for key in columns}
        table = "[columns]\n" + "".join(f"{_quoted(key)} = {column._toml()}\n" for key, column in declared.items())
        try:
            text = _conclave.from_formula(json.dumps(parts), table)
        except InvalidInput as error:
            undeclared = columns.undeclared if isinstance(columns, Codebook) else {}
            named = next((key for key in undeclared if f"`{key}`" in error.message or f"columns.{key}" in error.message), None)
            raise error if named is None else InvalidInput(f"the codebook does not declare {named!r}", remedy=undeclared[named]) from None
        settings: dict[str, Any] = {}
        if algorithm is not None:
            settings["algorithm"] = algorithm
        if priors:
            settings["prior"] = dict(priors)
        if sampler:
            settings["sampler"] = dict(sampler)
        if aggregation is not None:
            settings["aggregation"] = {"mode": aggregation} if isinstance(aggregation, str) else dict(aggregation)
        if isinstance(records, Mapping):
            settings["plan"] = {"records": dict(records)}
        elif records is not None and not isinstance(records, int):
            settings["plan"] = {"records": list(records)}
        return cls(text).replace(**settings) if settings else cls(text)

    @property
    def toml(self) -> str:
        """The text of the job."""
        return self._toml

    @cached_property
    def signed(self) -> str:
        """The text that a submission signs: the job with the algorithm and every other choice written into it."""
        return _conclave.completed(self._toml, False)

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self._about["name"])

    @property
    def parties(self) -> list[str]:
        """The data owners' names."""
        return list(self._about["parties"])

    @property
    def parameters(self) -> list[str]:
        """The names of the values of a draw."""
        return list(self._about["parameters"])

    @property
    def warnings(self) -> list[str]:
        """Warnings on the job's privacy, as sentences."""
        return list(self._about["warnings"])

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns that the model reads, with their declarations."""
        declared = self._document["columns"]

        def column(name: str) -> Column:
            of = declared[name]
            return levels(*of["levels"]) if "levels" in of else bounds(of["min"], of["max"]) if "min" in of else binary()

        return {name: column(name) for name in declared if name in self._about["columns"]}

    @cached_property
    def _document(self) -> dict[str, Any]:
        return tomllib.loads(self._toml)

    def __getitem__(self, key: str) -> Any:
        """Returns the value or the table of a key, as in job["privacy"]["epsilon"]."""
        return self._document[key]

    def replace(self, **settings: Any) -> Job:
        """Returns a job with other settings: `job.replace(name="b", privacy={"epsilon": 2.0})`.

        A dict sets keys of a table and leaves its other keys; None removes a key. Comments stay.

        Raises:
            InvalidInput: settings with which the text is no job.
        """
        return type(self)(_conclave.with_settings(self._toml, json.dumps(settings)))

    def write(self, path: str | Path) -> None:
        """Writes the job to a new file.

        Raises:
            FileExistsError: the file exists; nothing is overwritten.
        """
        with open(path, "x", encoding="utf-8") as file:
            file.write(self._toml)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self._toml == other._toml

    def __hash__(self) -> int:
        return hash(self._toml)

    def __repr__(self) -> str:
        about = self._about
        return f"<Job {about['name']!r}: {about['model']} by {about['algorithm']}, epsilon {about['epsilon']:g} at each of {', '.join(about['parties'])}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p><details><summary>job file</summary><pre>{html.escape(self._toml)}</pre></details>"
