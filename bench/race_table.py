"""Merges the figures of Conclave and of the rivals of bench/race.py into a Markdown table."""

import json
import math
import pathlib

import numpy as np

RIVALS = {"ada_ssp": "AdaSSP", "dp_gd": "DP-GD", "newton": "Newton", "ihm": "IHM", "newton_direction": "Newton †"}
TRUSTED = "newton_direction"
KINDS = ["linear", "logistic", "poisson", "negative_binomial"]
LIMIT_OF_LAW = 3.0


def read_ours(path):
    """Returns the cells in a file of JSON lines; other lines are skipped."""
    cells = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line.startswith("{")]
    for cell in cells:
        if "error" in cell:
            cell["rms"] = cell["error"]
    return cells


def paired(cells, ours, key):
    """Yields every cell, by model, with Conclave's cell, Conclave's figure if there is one, and the best rival's of the same
    trust model."""
    known = {(cell["set"], cell["kind"], float(cell["epsilon"])): cell for cell in ours}
    for cell in sorted(cells, key=lambda cell: KINDS.index(cell["kind"])):
        own = known.get((cell["set"], cell["kind"], float(cell["epsilon"])))
        best = min(figure[key] for name, figure in cell["rivals"].items() if name != TRUSTED)
        yield cell, own, (own or {}).get("median" if key == "median" else "rms"), best


def table(cells, ours, key):
    """Yields the lines of the Markdown table. A ratio above 1 is marked where the law is below LIMIT_OF_LAW.

    The last column is the best rival's figure with one setting for all sets of a model at an epsilon."""
    columns = ["set", "model", "records", "coefficients", "epsilon", "law", "Conclave", *RIVALS.values(), "ratio", "one setting"]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for cell, own, mine, best in paired(cells, ours, key):
        ratio = f"{mine / best:.2f}{' !' if mine > best and cell['law'] < LIMIT_OF_LAW else ''}" if mine is not None else "–"
        figure = f"{mine:.2f}" if mine is not None else "no answer" if own else "–"
        if mine is not None and own["answers"] < own["seeds"]:
            figure += f" ({own['answers']} of {own['seeds']})"
        theirs = " | ".join(shown(cell["rivals"].get(name, {}).get(key), best) for name in RIVALS)
        head = f"{cell['set']} | {cell['kind']} | {cell['records']:,} | {cell['coefficients']} | {cell['epsilon']:g}"
        one = min(figure.get("common", math.inf) for name, figure in cell["rivals"].items() if name != TRUSTED)
        yield f"| {head} | {cell['law']:.2f} | {figure} | {theirs} | {ratio} | {f'{one:.2f}' if one < math.inf else '–'} |"


def shown(figure, best):
    """Returns a rival's figure, the best in bold."""
    if figure is None:
        return "–"
    text = f"{figure:.2f}" if figure < 100 else "> 100"
    return f"**{text}**" if figure == best else text


def summary(cells, ours, key):
    """Returns a line on the cells whose law is below the limit."""
    below = [(mine, best) for cell, _, mine, best in paired(cells, ours, key) if cell["law"] < LIMIT_OF_LAW]
    ratios = [mine / best for mine, best in below if mine is not None]
    if not ratios:
        return f"{len(below)} cells have a law below {LIMIT_OF_LAW:g}."
    at_most = sum(ratio <= 1 for ratio in ratios)
    return (
        f"{len(below)} cells have a law below {LIMIT_OF_LAW:g}. Conclave has a figure in {len(ratios)}, and in {at_most} it is "
        f"at most the best rival's. The ratio is {min(ratios):.2f} to {max(ratios):.2f}, its median {np.median(ratios):.2f}."
    )
