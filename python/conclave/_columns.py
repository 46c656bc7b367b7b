"""Public declarations of columns: bounds, levels, and codebooks. Nothing here reads data: bounds that are taken from records
reveal the records."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import InvalidInput


@dataclass(frozen=True)
class Column:
    """The public declaration of a column: bounds, binary, or levels."""

    #: The smallest and largest possible value, for a column of numbers.
    bounds: tuple[float, float] | None = None
    #: The levels, the first of which is the reference.
    levels: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        if self.bounds is not None:
            return f"bounds({self.bounds[0]:g}, {self.bounds[1]:g})"
        return "binary()" if self.levels is None else f"levels({', '.join(map(repr, self.levels))})"

    def _toml(self) -> str:
        if self.bounds is not None:
            return f"{{ min = {self.bounds[0]!r}, max = {self.bounds[1]!r} }}"
        if self.levels is None:
            return "{ binary = true }"
        return f"{{ levels = [{', '.join(_quoted(level) for level in self.levels)}] }}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def bounds(low: float, high: float) -> Column:
    """Declares a column of numbers by public bounds, in the data's own units. Values outside are clamped.

    Bounds are public knowledge, such as 0 to 120 years, and never the smallest and largest value of the records.

    Raises:
        InvalidInput: bounds that are not finite, or of which the first is not the smaller.
    """
    low, high = float(low), float(high)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"bounds({low}, {high}): both must be finite, and the first the smaller")
    return Column(bounds=(low, high))


def binary() -> Column:
    """Declares a column of 0 and 1."""
    return Column()


def levels(*names: str) -> Column:
    """Declares a categorical column by its levels, the first of which is the reference.

    Raises:
        InvalidInput: fewer than two levels, or a level twice.
    """
    texts = tuple(str(name) for name in names)
    if len(texts) < 2 or len(set(texts)) < len(texts):
        raise InvalidInput(f"levels{texts}: give at least two different levels")
    return Column(levels=texts)


class Codebook(Mapping[str, Column]):
    """The columns that a public document declares, by name; `undeclared` says what is missing for the others."""

    def __init__(self, columns: dict[str, Column], undeclared: dict[str, str]) -> None:
        self._columns = columns
        #: For each column that the document names without a full declaration: what to write.
        self.undeclared = undeclared

    def __getitem__(self, name: str) -> Column:
        if name in self.undeclared:
            raise InvalidInput(f"the codebook does not declare {name!r}", remedy=self.undeclared[name])
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Codebook({self._columns!r}, undeclared={list(self.undeclared)})"


def codebook(path: str | Path) -> Codebook:
    """Reads the columns' declarations from a public document, never from data.

    The document is a Frictionless Table Schema or data package (`constraints`), a CSVW metadata file, or a REDCap data
    dictionary (CSV).

    Raises:
        InvalidInput: a file that cannot be read or is none of these.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    found = _of_json(text) if path.suffix.lower() in (".json", ".jsonld") else _of_redcap(text)
    if found is None:
        raise InvalidInput(
            f"{path} is no codebook that can be read",
            remedy="give a Table Schema, a data package or CSVW metadata (.json), or a REDCap data dictionary (.csv)",
        )
    columns = {name: column for name, column in found.items() if isinstance(column, Column)}
    return Codebook(columns, {name: column for name, column in found.items() if isinstance(column, str)})


def _declared(name: str, kind: str, low: Any, high: Any, choices: Any) -> Column | str:
    """Returns the declaration of a column, or what to write in its place."""
    if kind in ("boolean", "bool"):
        return binary()
    if choices:
        texts = [str(int(choice)) if isinstance(choice, float) and choice.is_integer() else str(choice) for choice in choices]
        if len(set(texts)) == len(texts) >= 2:
            return binary() if sorted(texts) == ["0", "1"] else levels(*texts)
    if kind in ("number", "integer", "decimal", "double", "float", "int", "long"):
        missing = [word for word, value in (("a minimum", low), ("a maximum", high)) if value in (None, "")]
        try:
            return bounds(float(low), float(high)) if not missing else f"the document gives no {' and no '.join(w[2:] for w in missing)}: write {name!r}: bounds(low, high)"
        except (ValueError, InvalidInput):
            return f"its limits {low!r} and {high!r} are no bounds: write {name!r}: bounds(low, high)"
    return f"the document lists no values for it: write {name!r}: levels(...) or bounds(low, high)"


def _of_json(text: str) -> dict[str, Column | str] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    schemas = [document, document.get("schema"), document.get("tableSchema")]
    for table in [*document.get("resources", []), *document.get("tables", [])]:
        schemas += [table.get("schema"), table.get("tableSchema")] if isinstance(table, dict) else []
    found: dict[str, Column | str] = {}
    for schema in (schema for schema in schemas if isinstance(schema, dict)):
        for field in schema.get("fields") or []:
            limits = field.get("constraints") or {}
            kind = str(field.get("type", "string"))
            name = str(field["name"])
            found[name] = _declared(name, kind, limits.get("minimum"), limits.get("maximum"), limits.get("enum") or _categories(field))
        for column in schema.get("columns") or []:
            found.update(_of_csvw(column))
    return found or None


def _categories(field: dict[str, Any]) -> list[Any]:
    categories = field.get("categories") or []
    return [category["value"] if isinstance(category, dict) else category for category in categories]


def _of_csvw(column: dict[str, Any]) -> dict[str, Column | str]:
    titles = column.get("titles")
    name = column.get("name") or (titles[0] if isinstance(titles, list) else titles)
    if not name:
        return {}
    kind = column.get("datatype", "string")
    kind = kind if isinstance(kind, dict) else {"base": kind}
    low, high = kind.get("minimum", kind.get("minInclusive")), kind.get("maximum", kind.get("maxInclusive"))
    pattern = str(kind.get("format", ""))
    # A pattern of plain alternatives is a list of values.
    plain = pattern and not set(pattern) & set("\\.*+?[]{}^$")
    choices = pattern.strip("()").split("|") if plain and kind.get("base", "string") == "string" else []
    return {str(name): _declared(str(name), str(kind.get("base", "string")), low, high, choices)}


def _of_redcap(text: str) -> dict[str, Column | str] | None:
    rows = list(csv.DictReader(text.splitlines()))
    variable = next((key for key in (rows[0] if rows else {}) if key and key.lower().startswith(("variable / field name", "field_name"))), None)
    if variable is None:
        return None

    def of(row: dict[str, str], *starts: str) -> str:
        return next(((value or "").strip() for key, value in row.items() if key and key.lower().startswith(starts)), "")

    found: dict[str, Column | str] = {}
    for row in rows:
        name, kind = row[variable].strip(), of(row, "field type", "field_type").lower()
        if kind in ("descriptive", "file", "notes", "checkbox") or not name:
            continue
        if kind in ("yesno", "truefalse"):
            found[name] = binary()
            continue
        codes = [choice.split(",")[0].strip() for choice in of(row, "choices", "select_choices").split("|") if choice.strip()]
        validation = of(row, "text validation type", "text_validation_type").lower()
        number = "number" if validation.startswith(("number", "integer")) else "string"
        low, high = of(row, "text validation min", "text_validation_min"), of(row, "text validation max", "text_validation_max")
        found[name] = _declared(name, number, low, high, codes if kind in ("radio", "dropdown") else [])
    return found
