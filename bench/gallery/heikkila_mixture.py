"""The mixture of Heikkilä et al. (2019), section 4: its records, its tempered posterior on a grid, and their random walk without privacy."""

import math
import random

BOUND, WALK_SD = 8.0, 0.1
NAMES = ["theta_1", "theta_2"]
# Priors, start and radii are in units of the column's half width, 8.
WALK_JOB = """name = "mixture"
algorithm = "barker"
parties = ["owner"]
[model]
kind = "gaussian_mixture"
outcome = "y"
sd = 1.4142135623730951
power = {power}
[columns]
y = {{ min = -8, max = 8 }}
[prior]
theta_1 = "normal(0, 0.3952847075210474)"
theta_2 = "normal(0, 0.125)"
[sampler]
start = {{ theta_1 = 0.0625, theta_2 = 0.0 }}
chains = 1
draws = {steps}
warmup = 0
seed = {seed}
proposal = {{ kind = "random_walk", radius = {{ theta_1 = 0.0125, theta_2 = 0.0125 }} }}
[privacy]
epsilon = {epsilon}
delta = 1e-6
"""


def records(count, seed=123):
    """Simulates their data: half of the records about theta_1 = 0, half about theta_1 + theta_2 = 1, variance 2."""
    rng = random.Random(seed)
    return [max(-BOUND, min(BOUND, rng.gauss(0.0 if rng.random() < 0.5 else 1.0, 2**0.5))) for _ in range(count)]


def histogram(values, width):
    counts = {}
    for y in values:
        place = round(y / width) * width
        counts[place] = counts.get(place, 0) + 1
    return counts


def log_likelihood(y, state):
    """Returns a record's log likelihood up to a constant."""
    first, both = state[0], state[0] + state[1]
    return math.log(math.exp(-((y - first) ** 2) / 4) + math.exp(-((y - both) ** 2) / 4))


def log_posterior(state, counts, power):
    return power * sum(n * log_likelihood(y, state) for y, n in counts.items()) - state[0] ** 2 / 20 - state[1] ** 2 / 2


def exact(counts, power):
    """Returns means and variances of the tempered posterior without privacy, on a grid, and 500 draws of the grid's points."""
    grid = [(-2.5 + 0.05 * i, -4.0 + 0.08 * j) for i in range(101) for j in range(101)]
    logs = [log_posterior(point, counts, power) for point in grid]
    weights = [math.exp(value - max(logs)) for value in logs]
    mean = [sum(w * p[k] for w, p in zip(weights, grid)) / sum(weights) for k in (0, 1)]
    variance = [sum(w * (p[k] - mean[k]) ** 2 for w, p in zip(weights, grid)) / sum(weights) for k in (0, 1)]
    return mean, variance, random.Random("states").choices(grid, weights, k=500)


def walk(counts, power, steps, seed):
    """Runs their random walk with Barker's test without privacy; returns `[parameter][step]`."""
    rng, at = random.Random(seed), (8 * 0.0625, 0.0)
    here, run = log_posterior(at, counts, power), ([], [])
    for _ in range(steps):
        to = tuple(x + rng.gauss(0, WALK_SD) for x in at)
        there = log_posterior(to, counts, power)
        # Barker's test, as in private chains but without privacy.
        if rng.random() < 1 / (1 + math.exp(min(700.0, here - there))):
            at, here = to, there
        for values, x in zip(run, at):
            values.append(x)
    return run
