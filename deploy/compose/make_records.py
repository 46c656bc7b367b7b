"""Writes the synthetic records of the three hospitals: fictitious stays. Run with: python3 make_records.py

A fraction SHARE of the stays is followed by a readmission. A 64-bit linear congruential generator gives the same bytes on every machine.
"""

import os

ROWS = {"a": 45000, "b": 42000, "c": 38000}
SHARE = 0.31
STATE = 20260


def readmitted():
    global STATE
    STATE = (STATE * 6364136223846793005 + 1442695040888963407) & ((1 << 64) - 1)
    return int((STATE >> 11) / 9007199254740992.0 < SHARE)


for party, rows in ROWS.items():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), party, "records.csv")
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("readmitted\n")
        file.writelines(f"{readmitted()}\n" for _ in range(rows))
