#!/usr/bin/env python3
"""Measures the overhead of masks in a round: the demo of ten owners alternates unmasked and masked answers.

    cargo build --release
    python3 bench/masks.py --conclave target/release/conclave [--parties 10] [--times 5] [--folder DIR]

Runs real processes over mutual TLS with strict ledgers in DIR, on the file system whose syncs are measured. The result is the median over pairs
of the ratio of the median times of a round (see bench/growth.py). bench/parties.py --secure measures a thousand parties. Prints one JSON object.
"""
import argparse
import json
import statistics
import sys
import tempfile

from growth import median_round

# Target for ten owners.
ASKED = 1.05


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--conclave", required=True, help="the conclave program, built with --release")
    words.add_argument("--parties", type=int, default=10)
    words.add_argument("--times", type=int, default=5)
    words.add_argument("--folder", help="folder of the demos")
    words.add_argument("--rows", type=int, default=1000)
    words.add_argument("--draws", type=int, default=1500)
    given = words.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for turn in range(given.times):
            ways = [("local", []), ("masked", ["--aggregation", "secure", "--colluders", 1])]
            found = {}
            # The order alternates too.
            for name, more in ways if turn % 2 == 0 else ways[::-1]:
                found[name] = median_round(
                    given.conclave, folder, parties=given.parties, rows=given.rows, chains=1, draws=given.draws,
                    durability="strict", more=more,
                )
            pairs.append([found["local"], found["masked"]])
            print(f"{found['local']:10,.0f} {found['masked']:10,.0f} us a round, ratio {found['masked'] / found['local']:.3f}", file=sys.stderr)
    ratio = statistics.median(masked / local for local, masked in pairs)
    print(json.dumps({"parties": given.parties, "round_us": pairs, "ratio": ratio, "asked": ASKED}))


if __name__ == "__main__":
    main()
