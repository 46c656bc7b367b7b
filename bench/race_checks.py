"""Tests the rivals of bench/race.py: limits without noise, sensitivities by search, and accounting.

- At mu = 1,000 the best settings of every rival end within 0.1 posterior sds of the posterior's mode (root mean square).
- No pair of records exceeds a sensitivity of bench/race_problem.py. The search is over corners, points of the box and
  shortened rows; the best pair attains at least 0.95 of each figure.
- The noise of every rival is measured: the squared sensitivities over the variances of its noisy vectors and matrices are
  its shares of mu^2.
- `sketch_delta` is Balle and Wang's delta without a sketch, the simulated one with a sketch, and at most the bound by
  Renyi divergences.
"""

import math

import numpy as np

from race_accounting import epsilon_at, gaussian_delta, mu_at, renyi_delta, sketch_delta, sketch_ratio
from race_noise import noise
from race_problem import Problem
from race_settings import grids
from real_sets import mu_of, without_privacy
from real_studies import studies
from rivals import Budget

SETS = [("diabetes", "linear"), ("fair", "logistic"), ("DoctorAUS", "poisson"), ("OFP", "negative_binomial")]
CLOSE = 0.1


def report(name, good, figure):
    print(f"{'ok  ' if good else 'FAIL'} {name}: {figure}", flush=True)
    return good


def limits(problem, label):
    """Runs a part of every grid at mu = 1,000: the most steps and the widest limits, with a clip that no record near the
    mode meets."""
    budget, top = Budget(mu=1000.0), max(1.0, float(np.abs(problem.y).max()))
    for name, (rival, settings) in grids(problem).items():
        keys = [key for key in ("steps", "limit", "outcome") if key in settings[0]]
        wide = [s for s in settings if all(s[key] == max(t[key] for t in settings) for key in keys)]
        wide = [s | {"clip": top} for s in wide if s.get("clip") == settings[0].get("clip")] if "clip" in settings[0] else wide
        wide = [s | {"limit": 1} for s in wide] if "limit" in keys else wide
        wide += [s | {"steps": 3000} for s in wide if name == "dp_gd"]
        with np.errstate(all="ignore"):
            errors = [
                np.sqrt((problem.errors(rival(problem, budget, np.random.default_rng(1), 2, **s)) ** 2).mean()) for s in wide
            ]
        yield report(
            f"{label}, {name} without noise",
            min(errors) < CLOSE,
            f"{min(errors):.4f} sds, {sum(e < CLOSE for e in errors)} of {len(wide)} settings",
        )


def pairs(problem, rng, count=200_000):
    """Returns two arrays of records in the declared box: corners, points, and corners that differ in a few columns."""
    low, high = np.array(problem.bounds, dtype=float).T
    corner = lambda: np.where(rng.random((count, problem.d)) < 0.5, low, high)
    first, second = corner(), corner()
    inside = rng.random((count, 1)) < 0.3
    point = low + (high - low) * rng.random((count, problem.d))
    return np.where(inside, point, first), np.where(inside & (rng.random((count, 1)) < 0.5), point[::-1], second)


def distance(first, second, u=1.0, v=1.0):
    """Returns |u xx' - v zz'|_F / root of 2 for pairs of records."""
    a, b, c = (first**2).sum(1), (second**2).sum(1), (first * second).sum(1)
    return np.sqrt(np.maximum(u * u * a**2 + v * v * b**2 - 2 * u * v * c**2, 0) / 2)


def sensitivities(problem, label):
    rng = np.random.default_rng(2)
    first, second = pairs(problem, rng)
    near = lambda found, claimed: 0.95 * claimed <= found <= claimed * (1 + 1e-9)
    found = distance(first, second).max()
    yield report(
        f"{label}, Gram matrix in the box",
        near(found, problem.gram_sensitivity),
        f"{found:.4f} of {problem.gram_sensitivity:.4f}",
    )
    shorten = lambda x, radius: x * np.minimum(1, radius / np.linalg.norm(x, axis=1))[:, None]
    for limit in (0.5, 0.75):
        radius = limit * problem.radius
        found = distance(shorten(first, radius), shorten(second, radius)).max()
        # Rows share an intercept of one sign, so a right angle, where the bound is attained, may not exist.
        yield report(
            f"{label}, Gram matrix of rows of {limit} radii",
            0.7 * radius**2 <= found <= radius**2 * (1 + 1e-9),
            f"{found:.4f} of {radius**2:.4f}",
        )
        free = shorten(rng.standard_normal((200_000, problem.d)) * 10, radius)
        other = shorten(rng.standard_normal((200_000, problem.d)) * 10, radius)
        found = distance(free, other).max()
        yield report(f"{label}, the same of any rows", near(found, radius**2), f"{found:.4f} of {radius**2:.4f}")
    bound = max(problem.gram_sensitivity, problem.radius**2 / math.sqrt(2)) / 4
    weights = rng.choice([0.0, 0.1, 0.25], size=(2, len(first)))
    found = distance(first, second, *weights).max()
    yield report(f"{label}, Hessian with weights to 1/4", near(found, bound), f"{found:.4f} of {bound:.4f}")
    values = [
        abs(np.linalg.eigvalsh(base + np.outer(x, x))[0] - np.linalg.eigvalsh(base + np.outer(z, z))[0])
        for x, z, base in eigenvalue_pairs(problem, rng)
    ]
    yield report(
        f"{label}, least eigenvalue",
        max(values) <= problem.radius**2 * (1 + 1e-9),
        f"{max(values):.4f} of {problem.radius ** 2:.4f}",
    )
    theta = np.array([problem.mode, -2 * problem.mode, 5 * rng.standard_normal(problem.d)])
    for clip in (0.1, 0.5, 1.0):
        residuals = problem.residuals(theta)
        factor = np.minimum(1, clip / np.maximum(np.abs(residuals) * problem.lengths, 1e-300))
        lengths = np.abs(residuals) * factor * problem.lengths
        yield report(f"{label}, gradients clipped to {clip}", lengths.max() <= clip * (1 + 1e-9), f"{lengths.max():.4f}")
        same = np.allclose(
            ((residuals * factor)[:, :, None] * problem.x * problem.counts[:, None]).sum(1), problem.gradient(theta, clip)
        )
        yield report(f"{label}, their sum", same, same)
    worst = direction_change(problem, rng)
    yield report(f"{label}, Newton's direction", worst <= 1 + 1e-9 and worst > 0.5, f"{worst:.4f} of its bound")


def eigenvalue_pairs(problem, rng):
    first, second = pairs(problem, rng, 3000)
    for x, z in zip(first, second):
        root = rng.standard_normal((problem.d, problem.d)) * rng.choice([0.1, 1, 5])
        yield x, z, root @ root.T


def direction_change(problem, rng):
    """Returns the largest change of (H + s I)^-1 g by a replacement, over its bound."""
    worst, d = 0.0, problem.d
    for _ in range(20_000):
        shift, most = rng.choice([0.5, 2, 20]), 0.25 * problem.radius**2
        root = rng.standard_normal((d, d)) * rng.choice([1e-3, 0.1, 1])
        base = root @ root.T + shift * np.eye(d)
        a, b, g = rng.standard_normal((3, d))
        a *= math.sqrt(most) / np.linalg.norm(a)
        b *= rng.choice([0, 1]) * math.sqrt(most) / np.linalg.norm(b)
        g = a * rng.choice([0.1, 1]) + g * rng.choice([0, 0.1, 1])
        change = np.linalg.solve(base + np.outer(a, a), g) - np.linalg.solve(base + np.outer(b, b), g)
        worst = max(worst, np.linalg.norm(change) / (np.linalg.norm(g) * most / (shift**2 + most * shift)))
    return worst


def accounting():
    for epsilon in (0.5, 1, 3, 8):
        mu = mu_at(epsilon, 1e-6)
        yield report(
            f"mu at epsilon {epsilon}",
            abs(mu / mu_of(epsilon) - 1) < 1e-6 and abs(epsilon_at(mu, 1e-6) / epsilon - 1) < 1e-6,
            f"{mu:.5f}",
        )
        yield report(
            f"delta without a sketch at {epsilon}",
            abs(sketch_delta(epsilon, 0, 0.1, mu) / gaussian_delta(epsilon, mu) - 1) < 1e-6,
            f"{sketch_delta(epsilon, 0, 0.1, mu):.4e}",
        )
        for rows in (4, 100):
            ratio = sketch_ratio(epsilon, 1e-6, rows, 0.6 * mu)
            exact, bound = sketch_delta(epsilon, rows, ratio, 0.6 * mu), renyi_delta(epsilon, rows, ratio, 0.6 * mu)
            yield report(
                f"delta of {rows} sketched rows at {epsilon}",
                abs(exact / 1e-6 - 1) < 1e-5 and 1 < bound / exact < 30,
                f"{exact:.3e}, Renyi {bound:.3e}",
            )
    rng = np.random.default_rng(6)
    for rows, ratio, mu, epsilon in [(10, 0.2, 0.5, 1.0), (60, 0.1, 0.7, 2.0), (3, 0.4, 0.3, 1.5)]:
        first, second = rng.chisquare(rows, (2, 2_000_000))
        loss = (
            rows / 2 * math.log1p(-(ratio**2))
            + first * ratio / (1 - ratio) / 2
            - second * ratio / (1 + ratio) / 2
            + mu**2 / 2
            + mu * rng.standard_normal(len(first))
        )
        lost = np.maximum(0, 1 - np.exp(epsilon - loss))
        exact = sketch_delta(epsilon, rows, ratio, mu)
        z = (lost.mean() - exact) / (lost.std() / math.sqrt(len(lost)))
        yield report(f"simulated delta of {rows} rows", abs(z) < 4, f"{lost.mean():.5f} of {exact:.5f}, z {z:.1f}")
    # Random matrices: the divergence of a row's pair is at most that of the dominating pair.
    worst = 0.0
    for _ in range(3000):
        d, ratio, alpha = 4, 0.2, 2.5
        root = rng.standard_normal((d, d)) * rng.choice([0.01, 0.3])
        x, z = rng.standard_normal((2, d))
        x, z = x / np.linalg.norm(x), z / np.linalg.norm(z)
        base = root @ root.T if rng.random() < 0.8 else np.eye(d) - np.outer(x, x)
        matrix = base + np.outer(x, x)
        matrix += max(1 / ratio - np.linalg.eigvalsh(matrix)[0], 0) * np.eye(d)
        other = matrix - np.outer(x, x) + np.outer(z, z)
        values = np.linalg.eigvals(np.linalg.solve(matrix, other)).real
        divergence = (alpha * np.log(values) - np.log(alpha * values + 1 - alpha)).sum() / (2 * (alpha - 1))
        worst = max(
            worst, divergence / ((alpha * math.log1p(-(ratio**2)) - math.log1p(-((alpha * ratio) ** 2))) / (2 * (alpha - 1)))
        )
    yield report("divergence of one sketched row", worst <= 1 + 1e-9 and worst > 0.8, f"{worst:.4f} of its bound")


def main(arguments):
    results = list(accounting())
    for study in studies(arguments):
        if (study.name, study.kind) not in SETS:
            continue
        (mean, covariance), _ = without_privacy(study)
        problem = Problem(study, mean, np.sqrt(np.diag(covariance)))
        label = f"{study.name}, {study.kind}"
        off = problem.errors(np.asarray(mean)[None, : problem.d])
        results.append(report(f"{label}, mode against mean", np.abs(off).max() < 0.25, f"{np.abs(off).max():.3f} sds"))
        results += [*limits(problem, label), *sensitivities(problem, label), *noise(problem, label, report)]
    print(f"{sum(results)} of {len(results)} checks passed")
    return 0 if all(results) else 1
