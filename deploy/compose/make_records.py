"""Makes the synthetic records of the three hospitals beside it: stays that no person had. Run with: python3 make_records.py

Readmitted or not follows age, body mass index and earlier visits by a logistic regression with COEFFICIENTS, on the scale of job.toml (each
column coded to [-1, 1] by its bounds). The same bytes on every machine: a 64-bit linear congruential generator.
"""

import math
import os

ROWS = {"a": 3000, "b": 3600, "c": 2400}
BOUNDS = [(0, 100), (10, 60), (0, 20)]
COEFFICIENTS = [-0.4, 1.2, 0.6, 0.9]
STATE = 20260


def uniform():
    global STATE
    STATE = (STATE * 6364136223846793005 + 1442695040888963407) & ((1 << 64) - 1)
    return (STATE >> 11) / 9007199254740992.0


def stay():
    age, bmi, visits = int(101 * uniform()), 10 + int(501 * uniform()) / 10, int(21 * uniform())
    coded = [2 * (value - least) / (greatest - least) - 1 for value, (least, greatest) in zip([age, bmi, visits], BOUNDS)]
    eta = COEFFICIENTS[0] + sum(slope * value for slope, value in zip(COEFFICIENTS[1:], coded))
    return f"{int(uniform() < 1 / (1 + math.exp(-eta)))},{age},{bmi:.1f},{visits}"


for party, rows in ROWS.items():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), party, "records.csv")
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("readmitted,age,bmi,prior_visits\n")
        file.writelines(stay() + "\n" for _ in range(rows))
