"""Prices of Laplace noise on a table of counts, as mu of Gaussian differential privacy: the tables of *Pure epsilon* in the gallery.

    python3 bench/laplace_price.py [--cells 10]

A replaced record moves each of `cells` counts by one at most, so the L1 sensitivity is `cells` and the noise has the scale cells / epsilon.
"""

import argparse
import math
import pathlib
import sys
from statistics import NormalDist

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "gallery"))

from runs import table

STEPS = 400


def upper(x):
    """Returns the probability that a standard normal number lies below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def of_normal(mu, t):
    """Returns the least delta at epsilon = t of a release of mu-GDP."""
    return upper(mu / 2 - t / mu) - math.exp(t) * upper(-t / mu - mu / 2)


def loss(epsilon):
    """Returns the law of the privacy loss of one count that moves by one under noise of scale 1 / epsilon: on a grid from -epsilon to epsilon, rounded up."""
    step = 2 * epsilon / STEPS
    law = [0.0] * (STEPS + 1)
    law[0], law[STEPS] = 0.5 * math.exp(-epsilon), 0.5
    for i in range(1, STEPS + 1):
        # Between the two centres the loss is epsilon (1 - 2 z).
        low, high = 1 - i / STEPS, 1 - (i - 1) / STEPS
        law[i] += 0.5 * (math.exp(-epsilon * low) - math.exp(-epsilon * high))
    return law, step


def exact(epsilon, cells):
    """Returns the least mu whose curve covers the release: at each of sixty points the mu with the release's delta."""
    one, step = loss(epsilon / cells)
    law = [1.0]
    for _ in range(cells):
        longer = [0.0] * (len(law) + STEPS)
        for i, a in enumerate(law):
            for j, b in enumerate(one):
                longer[i + j] += a * b
        law = longer
    most = 0.0
    for t in (epsilon * k / 60 for k in range(60)):
        delta = sum(p * -math.expm1(t + epsilon - i * step) for i, p in enumerate(law) if i * step - epsilon > t)
        low, high = 1e-6, 50.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if of_normal(middle, t) < delta else (low, middle)
        if delta > 1e-13:
            most = max(most, high)
    return most


def from_epsilon(epsilon, _cells=10):
    """Returns the least mu that covers every epsilon-private release."""
    return 2 * NormalDist().inv_cdf(math.exp(epsilon) / (1 + math.exp(epsilon)))


def rows(price, cells=10):
    """Returns the table of a price `(epsilon, cells) -> mu`, with the normal noise that the same charge buys."""
    made = []
    for epsilon in (0.1, 0.3, 1, 3, 10):
        mu, laplace = price(epsilon, cells), math.sqrt(2) * cells / epsilon
        normal = math.sqrt(cells) / mu
        made.append([f"{epsilon:g}", f"{mu:.4g}", f"{mu * mu:.4g}", f"{laplace:.1f}", f"{normal:.1f}", f"{(laplace / normal) ** 2:.1f}"])
    return table(["epsilon", "mu", "mu²", "sd of Laplace noise", "sd of normal noise at that mu²", "ratio of variances"], made)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=10)
    cells = parser.parse_args().cells
    for title, price in (("From epsilon alone", from_epsilon), ("Exactly", exact)):
        print(f"{title}:\n\n{rows(price, cells)}")


if __name__ == "__main__":
    main()
