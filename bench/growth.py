#!/usr/bin/env python3
"""Measures the time of a round against the numbers of records, chains and parties: real processes over mutual TLS, medians, and a plot.

    cargo build --release
    python3 bench/growth.py --conclave target/release/conclave --svg docs/explanation/growth.svg > growth.json

A round is one message to every party and all of their answers; its time is the difference between two entries of the
coordinator's iteration log. Records and chains are varied in `conclave demo`, whose parties answer without delay. bench/parties.py
simulates more parties than one machine can run as daemons; --parties takes its JSON.
Prints one JSON object: {"rows": [[n, median_us]...], "chains": ..., "parties": ...}.
"""
import argparse
import json
import math
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile


# Superscript digits for exponents.
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def median_round(conclave, folder, *, parties, rows, chains, draws, durability, more=()):
    """Runs a demo and returns the median time of a round after the search for the mode, in microseconds."""
    out = os.path.join(folder, "demo")
    shutil.rmtree(out, ignore_errors=True)
    command = [
        conclave, "demo", "--algorithm", "penalty", "--parties", parties, "--rows", rows, "--chains", chains, "--draws", draws,
        "--durability", durability, "--epsilon", 500, "--out", out, "--json",
        *more,
    ]
    ended = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{ended.stderr}")
    store = sqlite3.connect(os.path.join(out, "coordinator", "coordinator.sqlite"))
    # The search for the mode batches the pairs of all chains, so its messages have another length.
    length = store.execute("SELECT length(releases) FROM rounds ORDER BY iteration DESC LIMIT 1").fetchone()[0]
    log = store.execute("SELECT elapsed_us, length(releases) FROM rounds ORDER BY iteration").fetchall()
    store.close()
    shutil.rmtree(out, ignore_errors=True)
    times = [b[0] - a[0] for a, b in zip(log, log[1:]) if a[1] == length and b[1] == length]
    return statistics.median(times)


def report(name, value, micros):
    print(f"{name:>8} {value:>10,}  {micros:>12,.0f} µs a round", file=sys.stderr, flush=True)


def plot(series, path):
    """Writes three log-log panels side by side, as SVG."""
    width, height, left, bottom, top = 300, 260, 62, 44, 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * len(series)} {height}" font-family="sans-serif" '
        'font-size="11" role="img"><title>Time of a round</title>',
        f'<rect width="{width * len(series)}" height="{height}" fill="#ffffff"/>',
    ]
    times = [time for _, points in series for _, time in points]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    for panel, (name, points) in enumerate(series):
        x0, x1 = panel * width + left, (panel + 1) * width - 14
        y0, y1 = height - bottom, top
        first, last = math.log10(points[0][0]), math.log10(points[-1][0])
        across = lambda value: x0 + (x1 - x0) * (math.log10(value) - first) / max(last - first, 1e-9)
        up = lambda value: y0 + (y1 - y0) * (math.log10(value) - low) / max(high - low, 1e-9)
        for power in range(low, high + 1):
            y = up(10.0**power)
            word = f"{10**power:,} µs" if power < 3 else f"{10**(power - 3):,} ms"
            parts.append(f'<line x1="{x0}" x2="{x1}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
            parts.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{word}</text>')
        for power in range(math.ceil(first), math.floor(last) + 1):
            parts.append(f'<text x="{across(10.0**power):.1f}" y="{y0 + 16}" text-anchor="middle">{10**power if power < 4 else "10" + str(power).translate(RAISED)}</text>')
        line = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="#0b5fa5" stroke-width="2"/>')
        parts += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="#0b5fa5"/>' for x, y in points]
        parts.append(f'<text x="{(x0 + x1) / 2:.0f}" y="{height - 10}" text-anchor="middle">{name}</text>')
    parts.append("</svg>\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts))


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--conclave", required=True, help="the conclave program, built with --release")
    words.add_argument("--most-rows", type=int, default=10_000_000)
    words.add_argument("--durability", default="strict", choices=["strict", "reserve"])
    words.add_argument("--parties", help="output of bench/parties.py --json")
    words.add_argument("--from-json", help="an earlier output of this script, to plot without measuring")
    words.add_argument("--folder", help="folder of the demos, on the file system whose syncs are measured")
    words.add_argument("--svg", help="output file of the plot")
    given = words.parse_args()
    if given.from_json:
        with open(given.from_json, encoding="utf-8") as file:
            found = json.load(file)
    else:
        found = measure(given)
    if given.parties:
        with open(given.parties, encoding="utf-8") as file:
            rows = {row["parties"]: row["round_us"] for row in json.load(file)["rows"] if row["chains"] == 1}
            found["parties"] = [list(row) for row in sorted(rows.items())]
    print(json.dumps(found))
    if given.svg:
        names = {"rows": "records of one party, one chain", "chains": "chains, 3 parties of 1,000", "parties": "simulated parties, one chain"}
        plot([(names[key], points) for key, points in found.items() if key in names], given.svg)


def measure(given):
    found = {"rows": [], "chains": []}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        rows = 1000
        while rows <= given.most_rows:
            draws = 2000 if rows <= 100_000 else 100
            micros = median_round(
                given.conclave, folder, parties=1, rows=rows, chains=1, draws=draws, durability=given.durability
            )
            report("rows", rows, micros)
            found["rows"].append([rows, micros])
            rows *= 10
        for chains in [1, 2, 4, 8, 16, 32, 64]:
            micros = median_round(
                given.conclave, folder, parties=3, rows=1000, chains=chains, draws=400, durability=given.durability
            )
            report("chains", chains, micros)
            found["chains"].append([chains, micros])
    return found


if __name__ == "__main__":
    main()
