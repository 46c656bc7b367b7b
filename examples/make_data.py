"""Writes the synthetic records under data/, a fictitious study. Run with: python3 make_data.py

Two clinics have 2,000 and 3,000 patients: age, treatment, readmission and blood pressure. Two hospitals have 1,300 stays each:
age, ward, days in bed, falls (Poisson), infections (negative binomial), pain (linear), weight (student_t), blood group, a
marker (two normal components), and months until death or censoring (Weibull). The coefficients are in patient() and
hospital_stay(). A 64-bit linear congruential generator and rounded values give the same bytes on every machine.
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


def poisson(mean):
    count, product = 0, uniform()
    while product > math.exp(-mean):
        count, product = count + 1, product * uniform()
    return count


def gamma(shape):
    """Draws from a gamma distribution with integer shape and rate 1, as a sum of exponentials."""
    return sum(-math.log(1.0 - uniform()) for _ in range(shape))


def within(value, least, greatest):
    return min(max(value, least), greatest)


def hospital_stay():
    age = 40 + int(61 * uniform())
    x = (age - 70) / 30  # as a job scales it
    ward = int(3 * uniform())
    bed_days = 1 + int(20 * uniform())
    falls = poisson(bed_days * math.exp(-3.0 + 0.4 * x))
    # Dispersion 1/2: the rate of a record is gamma with shape 2 and mean mu.
    infections = poisson(math.exp(0.2 + 0.5 * x) * gamma(2) / 2)
    pain = 45 + 8 * x + (0, 6, -4)[ward] + (0, 5, 0)[ward] * x + 10 * normal()
    # Four degrees of freedom.
    weight = 75 - 6 * x + 8 * normal() / math.sqrt(2 * gamma(2) / 4)
    u = uniform()
    blood = "0" if u < 0.42 else "A" if u < 0.83 else "B" if u < 0.95 else "AB"
    marker = (4 if uniform() < 0.5 else 0) + math.sqrt(2.0) * normal()
    death, end = 30 * (-math.log(1.0 - uniform())) ** (1 / 1.4), within(90 * uniform(), 1, 60)
    months = within(min(death, end), 1, 60)
    return (
        f"{age},{('medicine', 'surgery', 'geriatrics')[ward]},{bed_days},{within(falls, 0, 6)},{within(infections, 0, 10)},"
        f"{within(pain, 0, 100):.0f},{within(weight, 30, 120):.0f},{blood},{within(marker, -8, 12):.2f},{months:.1f},{int(death <= end)}"
    )


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    os.makedirs(folder, exist_ok=True)
    for name, rows in [("clinic-a", 2000), ("clinic-b", 3000)]:
        with open(os.path.join(folder, name + ".csv"), "w") as file:
            file.write("age,treated,readmitted,pressure\n")
            file.writelines(patient() + "\n" for _ in range(rows))
    for name in ["hospital-a", "hospital-b"]:
        with open(os.path.join(folder, name + ".csv"), "w") as file:
            file.write("age,ward,bed_days,falls,infections,pain,weight,blood,marker,months,died\n")
            file.writelines(hospital_stay() + "\n" for _ in range(1300))
