"""Makes the synthetic records under data/: a made-up study that no person is in. Run with: python3 make_data.py

Two clinics, 2,000 and 3,000 patients: age, whether treated, readmitted or not, and a blood pressure.
The same bytes on every machine: a 64-bit linear congruential generator, and values rounded to what a file shows.
"""

import math
import os

STATE = 12345


def uniform():
    global STATE
    STATE = (STATE * 6364136223846793005 + 1442695040888963407) & ((1 << 64) - 1)
    return (STATE >> 11) / 9007199254740992.0


def normal():
    return math.sqrt(-2.0 * math.log(1.0 - uniform())) * math.cos(2.0 * math.pi * uniform())


def patient():
    age = 20 + int(61 * uniform())
    treated = int(uniform() < 0.5)
    eta = -0.6 + 0.8 * treated + 0.5 * (age - 50) / 30
    readmitted = int(uniform() < 1.0 / (1.0 + math.exp(-eta)))
    pressure = 120 + 10 * (age - 50) / 30 - 4 * treated + 12 * normal()
    return f"{age},{treated},{readmitted},{min(max(pressure, 60), 200):.0f}"


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    os.makedirs(folder, exist_ok=True)
    for name, rows in [("clinic-a", 2000), ("clinic-b", 3000)]:
        with open(os.path.join(folder, name + ".csv"), "w") as file:
            file.write("age,treated,readmitted,pressure\n")
            file.writelines(patient() + "\n" for _ in range(rows))
