"""Heikkilä, Jälkö, Dikmen & Honkela (2019): the mixture of their figures 2 and 3, tempered."""

import random
import tempfile

from runs import Refused, Skipped, write

JOB = """name = "mixture"
algorithm = "barker"
parties = ["owner"]
[model]
kind = "gaussian_mixture"
outcome = "y"
sd = 1.4142135623730951
power = 0.001
[columns]
y = {{ min = -8, max = 8 }}
[prior]
theta_1 = "normal(0, 3.1622776601683795)"
theta_2 = "normal(0, 1)"
[sampler]
chains = 1
draws = 100
start = {{ theta_1 = 0.5, theta_2 = 0.0 }}
[privacy]
epsilon = {epsilon}
delta = 1e-6
"""


def records(count, seed=123):
    """Their data: half of the records about theta_1 = 0, half about theta_1 + theta_2 = 1, variance 2."""
    rng = random.Random(seed)
    return [max(-8.0, min(8.0, rng.gauss(0.0 if rng.random() < 0.5 else 1.0, 2**0.5))) for _ in range(count)]


def make(program, _out, _data):
    """The figures are for whoever builds `barker`: until it runs, the page is skipped."""
    with tempfile.TemporaryDirectory() as folder:
        file = write(folder, "mixture.csv", ["y"], ([f"{y:.4f}"] for y in records(1000)))
        try:
            program.rehearse(JOB.format(epsilon=3.0), [file], 1)
        except Refused as why:
            raise Skipped(str(why)) from why
    raise Skipped("barker runs: its page is not written yet")
