"""Checks that the pages of the gallery have the words of their texts: `make.py` would change tables and figures of a page, and no
other word.

    python3 bench/gallery/rendered.py

Standard library only.
"""

import pathlib
import re
import sys

import dp_hmc
import heikkila_text
import ju_text
import penalty
import wang_text

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/explanation/gallery"
TEXTS = {"dp-hmc": dp_hmc, "heikkila": heikkila_text, "ju": ju_text, "penalty": penalty, "wang": wang_text}


def fields(text, page):
    """Returns the values that `str.format` gave the fields of a text, or `None` if the page has other words."""
    pattern, seen = "", set()
    for part in re.split(r"(\{\w*(?::[^}]*)?\})", text.replace("{{", "\0").replace("}}", "\1")):
        field = re.fullmatch(r"\{(\w+)(?::[^}]*)?\}", part)
        if not field:
            pattern += re.escape(part.replace("\0", "{").replace("\1", "}"))
        elif field[1] in seen:
            pattern += f"(?P={field[1]})"
        else:
            pattern += f"(?P<{field[1]}>.*?)"
            seen.add(field[1])
    found = re.fullmatch(pattern, page, re.DOTALL)
    return found and found.groupdict()


def main():
    """Ends with 1 where a page has other words than its text."""
    other = [name for name, module in TEXTS.items() if fields(module.TEXT, (FOLDER / f"{name}.md").read_text(encoding="utf-8")) is None]
    for name in other:
        print(f"docs/explanation/gallery/{name}.md: its words are not those of {pathlib.Path(TEXTS[name].__file__).name}: change both alike", file=sys.stderr)
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
