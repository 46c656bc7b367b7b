"""Rows of figures, shown as a table."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) < 1e-3 and value != 0 else f"{value:.4f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{key}={_cell(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(_cell(part) for part in value)
    return str(value)


class Rows(list[dict[str, Any]]):
    """Rows of figures: a list of dicts, which shows itself as a table in a terminal and in a notebook."""

    @property
    def columns(self) -> list[str]:
        """The columns' names, in the order of their appearance."""
        return list(dict.fromkeys(key for row in self for key in row))

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the rows as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(list(self), columns=self.columns)

    def __repr__(self) -> str:
        lines = [self.columns, *([_cell(row.get(key)) for key in self.columns] for row in self)]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))]
        text = ("  ".join(word.ljust(width) if at == 0 else word.rjust(width) for at, (word, width) in enumerate(zip(line, widths))) for line in lines)
        return "\n".join(line.rstrip() for line in text)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(key)}</th>" for key in self.columns)
        rows = ("".join(f"<td>{html.escape(_cell(row.get(key)))}</td>" for key in self.columns) for row in self)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"
