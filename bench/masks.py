#!/usr/bin/env python3
"""What masks add to a round: the demo of ten owners with answers opened one by one and with their sum alone, in turn.

    cargo build --release
    python3 bench/masks.py --conclave target/release/conclave [--parties 10] [--times 5] [--folder DIR]

Real processes over mutual TLS with strict ledgers in DIR, the file system whose syncs count; medians of a round's time as bench/growth.py
takes them, and the ratio of each pair, whose median is the figure. Of a thousand parties bench/parties.py --secure tells. Prints one JSON object.
"""
import argparse
import json
import statistics
import sys
import tempfile

from growth import median_round

# Asked of ten owners.
ASKED = 1.05


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--conclave", required=True, help="the conclave program, built with --release")
    words.add_argument("--parties", type=int, default=10)
    words.add_argument("--times", type=int, default=5)
    words.add_argument("--folder", help="where the demos run")
    words.add_argument("--rows", type=int, default=1000)
    words.add_argument("--draws", type=int, default=1500)
    given = words.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for turn in range(given.times):
            ways = [("local", []), ("masked", ["--aggregation", "secure", "--colluders", 1])]
            found = {}
            # Who is first takes turns too.
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
