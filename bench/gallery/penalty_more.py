"""Yıldırım's theorems with their numbers, Algorithms 1 and 3 at equal budgets, and the penalty on samples."""

import json
import math
import pathlib
import random
import subprocess
import tempfile

import posteriors
from runs import HEADINGS, Score, table, write

EPSILONS, DELTA = [1, 3, 8], 1e-6
PLAN = """[plan]
records = {records}
posterior.p = {{ mean = 0.3, sd = 0.00229 }}
"""
# Total noise of guided moves and of the other kinds of moves.
NOISES = [1.75, 2.4]
EQUAL_EPSILONS, EQUAL_SEEDS = [1, 3], 4
EQUAL = [
    ("Algorithm 1: `penalty`", "penalty", 100_000),
    ("Algorithm 3: `penalty-exp-family`, 500 draws a chain", "penalty-exp-family", 500),
    ("Algorithm 3: `penalty-exp-family`, 3,000 draws a chain", "penalty-exp-family", 3_000),
]
# A step of .44 posterior sds: the variance of a ratio over records is its square.
STEP, RATES, ROUNDS, SIMULATED = 0.44, [1.0, 0.5, 0.2, 0.1], 5_000, 400_000


def theorems(program, job, records):
    """Returns the table of rounds that a budget affords by each accounting, from `conclave plan`."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "job.toml"
        for epsilon in EPSILONS:
            path.write_text(job(epsilon) + PLAN.format(records=records))
            ran = subprocess.run([program.path, "plan", str(path), "--json"], capture_output=True, text=True, check=True)
            party = json.loads(ran.stdout)["parties"][0]
            rows.append([f"{epsilon}", *(f"{party[key]:,}" for key in ("iterations_gdp", "iterations_zcdp", "iterations_advanced", "iterations_theorem_1"))])
    return table(["epsilon", "ours", "zero-concentrated", "Theorems 2 and 3", "Theorem 1"], rows)


def shares():
    """Returns the table of Proposition 2: the share of the acceptance without noise that is left."""
    tail = lambda x: 0.5 * math.erfc(x / math.sqrt(2))
    rows = [[f"{sd:g}", f"{tail(sd * sd / 2):.3f}", f"{2 * tail(sd / 2):.3f}"] for sd in NOISES]
    return table(["noise sd of a ratio", "the paper's kappa", "greatest kappa"], rows)


def equal_budgets(program, job, file, exact):
    rows = []
    for epsilon in EQUAL_EPSILONS:
        for name, algorithm, draws in EQUAL:
            text = job(epsilon).replace("draws = 3000", f"draws = {draws}").replace('"penalty"', f'"{algorithm}"')
            rows.append([f"{epsilon}", name, *Score(program.all([(text, [file], seed) for seed in range(EQUAL_SEEDS)]), exact).cells()])
    return table(["epsilon", "algorithm", *HEADINGS], rows)


def sampling_variance(rate):
    """Returns the variance that a sample adds to the ratio of a step."""
    return (1 - rate) / rate * STEP**2


def posterior_variance(rate, penalised):
    """Simulates the penalty's chain on a standard normal posterior by guided steps, whose ratio has the noise of privacy and that of the sample; returns the
    variance of its states. `penalised` is the variance of which half is taken off."""
    rng = random.Random(f"samples {rate} {penalised}")
    sd, at, sign, states = NOISES[0], 0.0, 1.0, []
    for _ in range(SIMULATED):
        to = at + sign * STEP * (1 + 0.1 * rng.uniform(-1, 1))
        ratio = (at * at - to * to) / 2 + rng.gauss(0, sd)
        if math.log(1 - rng.random()) < ratio - penalised / 2:
            at = to
        else:
            sign = -sign
        states.append(at)
    return sum(x * x for x in states) / SIMULATED - (sum(states) / SIMULATED) ** 2


def samples(program, records):
    """Returns the table of the penalty on samples at the same total noise of a ratio: its price, and the posterior's variance with and without the penalty of
    the sample's part."""
    # A step of .44 sds moves a record's log likelihood by at most this, for the share .3.
    bound = STEP * math.sqrt(0.3 * 0.7 / records) / 0.3
    total, rows = NOISES[0] ** 2, []
    for rate in RATES:
        own = total - sampling_variance(rate)
        if own <= 0:
            rows.append([f"{rate:g}", f"{sampling_variance(rate):.2f}", "none", "–", "–", "–"])
            continue
        noise = rate * math.sqrt(own)
        if rate == 1.0:
            price = program.account("--queries", f"{2 * bound / noise!r}x{ROUNDS}", "--delta", DELTA)["epsilon_gdp"]
        else:
            words = ("--subsampled", "--probability", rate, "--sensitivity", bound, "--noise", noise, "--releases", ROUNDS, "--delta", DELTA)
            price = program.account(*words)["epsilon_composed"]
        full, owners = posterior_variance(rate, total), posterior_variance(rate, own)
        rows.append([f"{rate:g}", f"{sampling_variance(rate):.2f}", f"{own:.2f}", f"{price:.3f}", f"{full:.3f}", f"{owners:.3f}"])
    heads = ["sampling rate", "variance of the sample", "left for the owners", f"epsilon of {ROUNDS:,} ratios", "posterior variance, all penalised", "the owners' part penalised"]
    return table(heads, rows)


def words(program, job, file, outcomes, records):
    exact = {"p": posteriors.beta(sum(outcomes), records)}
    return {
        "theorems": theorems(program, job, records),
        "shares": shares(),
        "equal": equal_budgets(program, job, file, exact),
        "samples": samples(program, records),
    }


def share_job(template, epsilon):
    return template.replace("{epsilon:?}", "{epsilon}").format(algorithm="penalty", parties='"owner-1"', sampler="warmup = 50", epsilon=float(epsilon))


def make(program, template, outcomes):
    """Returns the page's further tables by name."""
    with tempfile.TemporaryDirectory() as folder:
        file = write(folder, "share.csv", ["y"], [[y] for y in outcomes])
        return words(program, lambda epsilon: share_job(template, epsilon), file, outcomes, len(outcomes))
