"""The gallery: one page a paper, each with its claim, ours at the same true epsilon, and the better algorithm beside it.

    python3 bench/gallery/make.py --conclave target/release/conclave [--only penalty,ju] [--data DIR] [--workers 2]

Standard library only. Data is made here, or read from --data (abalone.csv and adult-a.csv, adult-b.csv, adult-c.csv of the UCI sets); a page whose data or
algorithm is missing is skipped, with the reason. Pages and figures go to docs/explanation/gallery/.
"""

import argparse
import pathlib
import sys

import dp_hmc
import heikkila
import ju
import penalty
import wang
from runs import Program, Skipped, workers

PAGES = {"penalty": penalty, "heikkila": heikkila, "ju": ju, "wang": wang, "dp-hmc": dp_hmc}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conclave", required=True)
    parser.add_argument("--only", help="pages, with commas between")
    parser.add_argument("--data", type=pathlib.Path, help="folder of real data")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "docs/explanation/gallery")
    parser.add_argument("--workers", type=int, default=workers())
    parser.add_argument("--kept", type=pathlib.Path, help="folder of results: runs that it has are not repeated; for one version of the program")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.kept:
        given.kept.mkdir(parents=True, exist_ok=True)
    for name in given.only.split(",") if given.only else PAGES:
        program = Program(given.conclave, given.workers, given.kept)
        try:
            PAGES[name].make(program, given.out, given.data)
        except Skipped as why:
            print(f"{name}: skipped: {why}", file=sys.stderr)
            continue
        print(f"{name}: {program.seconds:.0f} s of runs", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
