#!/usr/bin/env python3
"""Measures the coordinator's cost per party, and the time of a round against the numbers of parties and chains.

One process simulates all parties, each on a mutual-TLS stream with its own certificate, and answers without delay. The coordinator is the
shipped daemon, and its processor time and memory are measured by the operating system (`coordinator/examples/parties.rs`). If both share two
cores, a round takes longer than the coordinator's part of it.

    python3 bench/parties.py [--parties 1,3,10,30,100,300,1000] [--chains 1,4,16,64] [--secure] [--json]

The number of chains is varied with three parties. With `--secure` every job of three or more parties is also run with masked answers. Builds
both programs in release mode.
"""
import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Targets for 1,000 parties.
CPU_US, KIB = 40, 64


def build():
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "conclave-coordinator", "--bins", "--example", "parties"],
                   check=True, cwd=ROOT)
    metadata = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], check=True, cwd=ROOT, capture_output=True)
    return Path(json.loads(metadata.stdout)["target_directory"]) / "release"


def measure(release, parties, chains, *secure):
    # Every run takes a few seconds, whatever the number of parties.
    rounds = max(100, min(5000, 100_000 // (parties * max(1, chains // 8))))
    command = [release / "examples" / "parties", release / "conclave-coordinator", parties, chains, rounds, *secure]
    run = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--parties", type=numbers, default=[1, 3, 10, 30, 100, 300, 1000])
    arguments.add_argument("--chains", type=numbers, default=[1, 4, 16, 64])
    arguments.add_argument("--secure", action="store_true", help="also measure masked answers")
    arguments.add_argument("--release", type=Path, help="folder of programs already built")
    arguments.add_argument("--json", action="store_true", help="print only one JSON object on standard output")
    asked = arguments.parse_args()
    release = asked.release or build()
    ways = [[], ["secure"]] if asked.secure else [[]]
    jobs = [(parties, 1) for parties in asked.parties] + [(3, chains) for chains in asked.chains]
    rows = [measure(release, *job, *way) for job in jobs for way in ways if job[0] > 2 or not way]
    if asked.json:
        print(json.dumps({"asked": {"cpu_us_per_party_round": CPU_US, "kib_per_party": KIB}, "rows": rows}))
        return
    print(f"targets for 1,000 parties: at most {CPU_US} us of the coordinator's processor per party and round, {KIB} KiB per party")
    print(f"{'parties':>8}{'chains':>8}{'masked':>8}{'open, ms':>10}{'round, us':>12}{'CPU us/party':>14}{'KiB attached':>14}{'KiB running':>13}")
    for row in rows:
        print(f"{row['parties']:8}{row['chains']:8}{row['secure']:8}{row['open_ms']:10.0f}{row['round_us']:12.0f}{row['cpu_us_per_party_round']:14.1f}"
              f"{row['attached_kib_per_party']:14.1f}{row['running_kib_per_party']:13.1f}")


if __name__ == "__main__":
    main()
