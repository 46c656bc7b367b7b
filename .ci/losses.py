#!/usr/bin/env python3
"""Compares `conclave account --subsampled` with the privacy loss distributions of Google's dp-accounting.

    pip install dp-accounting && .ci/losses.py --conclave target/debug/conclave

For each setting and both adjacencies:

- epsilon of the composition is at least dp-accounting's optimistic epsilon, a lower bound. It is at most 0.2 % above the pessimistic epsilon, and
  below it by at most that epsilon's discretisation error. The error is estimated from the change of the pessimistic epsilon when its losses are
  twice as far apart, where a chord's excess is four times as large;
- the curve of one block's charge, delta' + (1 - delta') G(epsilon; mu), lies above the optimistic delta at every epsilon.
"""
import argparse
import json
import math
import subprocess
import warnings

from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import norm

RELATIONS = {"add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE, "replace": NeighboringRelation.REPLACE_ONE}
DELTA = 1e-6
MOST_ABOVE = 2e-3
# Probability as a multiple of 2^-20, noise multiplier, releases, distance of dp-accounting's losses.
SETTINGS = [
    (1049, 31.622776601683793, 5000, 2e-7),  # a thousand of a million
    (1049, 10.0, 5000, 1e-6),
    (10486, 2.0, 500, 4e-6),
    (10486, 2.0, 10000, 1e-5),
    (104858, 2.0, 1000, 1e-4),
    (10486, 1.0, 1000, 2e-5),
    (65536, 1.25, 3, 1e-4),
    (300000, 0.8, 1, 1e-4),
]


def account(program, parts, multiplier, releases, adjacency):
    command = [program, "account", "--subsampled", "--json", "--delta", repr(DELTA), "--adjacency", adjacency]
    command += ["--probability", repr(parts / 2**20), "--noise-multiplier", repr(multiplier), "--releases", str(releases)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def distribution(parts, multiplier, releases, adjacency, interval, pessimistic):
    with warnings.catch_warnings():
        # The library warns that connecting dots does not help a lower bound.
        warnings.simplefilter("ignore")
        one = pld.from_gaussian_mechanism(
            multiplier, sampling_prob=parts / 2**20, value_discretization_interval=interval,
            pessimistic_estimate=pessimistic, use_connect_dots=pessimistic, neighboring_relation=RELATIONS[adjacency])
    return one.self_compose(releases)


def covering_curve(cost, epsilon):
    mu, reserve = cost["mu_block"], cost["delta_block"]
    gaussian = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    return reserve + (1 - reserve) * gaussian


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conclave", default="target/debug/conclave")
    program = parser.parse_args().conclave
    print("2^20 q  noise  releases  adjacency    epsilon   pessimistic  its error   optimistic   above")
    for parts, multiplier, releases, interval in SETTINGS:
        for adjacency in RELATIONS:
            cost = account(program, parts, multiplier, releases, adjacency)
            assert cost["probability"] == parts / 2**20 and abs(cost["relative_sensitivity"] * multiplier - 1) < 1e-12, cost
            own = cost["epsilon_composed"]
            coarse = distribution(parts, multiplier, releases, adjacency, 2 * interval, True).get_epsilon_for_delta(DELTA)
            upper = distribution(parts, multiplier, releases, adjacency, interval, True).get_epsilon_for_delta(DELTA)
            optimistic = distribution(parts, multiplier, releases, adjacency, interval, False)
            lower, error = optimistic.get_epsilon_for_delta(DELTA), abs(coarse - upper)
            print(f"{parts:6} {multiplier:6.2f} {releases:9}  {adjacency:10} {own:10.7f} {upper:12.7f} {error:11.1e} {lower:12.7f} {own / upper - 1:+9.1e}", flush=True)
            assert own >= lower, "below a lower bound"
            assert own >= upper - error, "below dp-accounting"
            assert own <= upper * (1 + MOST_ABOVE), "too far above dp-accounting"
            epsilons = [cost["mu_block"] * i / 25 for i in range(201)]
            for epsilon, delta in zip(epsilons, optimistic.get_delta_for_epsilon(epsilons)):
                assert covering_curve(cost, epsilon) >= delta * (1 - 1e-9), f"a charge is too small at {epsilon}"


if __name__ == "__main__":
    main()
