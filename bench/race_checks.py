"""Tests the rivals of bench/race.py: limits without noise, sensitivities by search, and accounting.

- At mu = 1,000 the best settings of every rival end within 0.1 posterior sds of the posterior's mode (root mean square).
- No pair of records exceeds a sensitivity of bench/race_problem.py. The search is over corners, points of the box and shortened rows; the best
  pair attains at least 0.95 of each figure.
- The noise of every rival is measured: the squared sensitivities over the variances of its noisy vectors and matrices are its shares of mu^2.
- `sketch_delta` is Balle and Wang's delta without a sketch, the simulated one with a sketch, and at most the bound by Renyi divergences.
"""

import math

import numpy as np

import rivals
from race_accounting import epsilon_at, gaussian_delta, mu_at, renyi_delta, sketch_delta, sketch_ratio
from race_problem import OWNERS, Problem
from real_sets import mu_of, without_privacy
from real_studies import studies
from rivals import Budget, grids, symmetric

SETS = [("diabetes", "linear"), ("fair", "logistic"), ("DoctorAUS", "poisson"), ("OFP", "negative_binomial")]
CLOSE = 0.1


def report(name, good, figure):
    print(f"{'ok  ' if good else 'FAIL'} {name}: {figure}", flush=True)
    return good


def limits(problem, label):
    """Runs a part of every grid at mu = 1,000: the most steps and the widest limits, with a clip that no record near the mode meets."""
    budget, top = Budget(mu=1000.0), max(1.0, float(np.abs(problem.y).max()))
    for name, (rival, settings) in grids(problem).items():
        keys = [key for key in ("steps", "limit", "outcome") if key in settings[0]]
        wide = [s for s in settings if all(s[key] == max(t[key] for t in settings) for key in keys)]
        wide = [s | {"clip": top} for s in wide if s.get("clip") == settings[0].get("clip")] if "clip" in settings[0] else wide
        wide = [s | {"limit": 1} for s in wide] if "limit" in keys else wide
        wide += [s | {"steps": 3000} for s in wide if name == "dp_gd"]
        with np.errstate(all="ignore"):
            errors = [np.sqrt((problem.errors(rival(problem, budget, np.random.default_rng(1), 2, **s)) ** 2).mean()) for s in wide]
        yield report(f"{label}, {name} without noise", min(errors) < CLOSE, f"{min(errors):.4f} sds, {sum(e < CLOSE for e in errors)} of {len(wide)} settings")


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
    yield report(f"{label}, Gram matrix in the box", near(found, problem.gram_sensitivity), f"{found:.4f} of {problem.gram_sensitivity:.4f}")
    shorten = lambda x, radius: x * np.minimum(1, radius / np.linalg.norm(x, axis=1))[:, None]
    for limit in (0.5, 0.75):
        radius = limit * problem.radius
        found = distance(shorten(first, radius), shorten(second, radius)).max()
        # Rows share an intercept of one sign, so a right angle, where the bound is attained, may not exist.
        yield report(f"{label}, Gram matrix of rows of {limit} radii", 0.7 * radius**2 <= found <= radius**2 * (1 + 1e-9), f"{found:.4f} of {radius**2:.4f}")
        free = shorten(rng.standard_normal((200_000, problem.d)) * 10, radius)
        other = shorten(rng.standard_normal((200_000, problem.d)) * 10, radius)
        found = distance(free, other).max()
        yield report(f"{label}, the same of any rows", near(found, radius**2), f"{found:.4f} of {radius**2:.4f}")
    bound = max(problem.gram_sensitivity, problem.radius**2 / math.sqrt(2)) / 4
    weights = rng.choice([0.0, 0.1, 0.25], size=(2, len(first)))
    found = distance(first, second, *weights).max()
    yield report(f"{label}, Hessian with weights to 1/4", near(found, bound), f"{found:.4f} of {bound:.4f}")
    values = [abs(np.linalg.eigvalsh(base + np.outer(x, x))[0] - np.linalg.eigvalsh(base + np.outer(z, z))[0]) for x, z, base in eigenvalue_pairs(problem, rng)]
    yield report(f"{label}, least eigenvalue", max(values) <= problem.radius**2 * (1 + 1e-9), f"{max(values):.4f} of {problem.radius ** 2:.4f}")
    theta = np.array([problem.mode, -2 * problem.mode, 5 * rng.standard_normal(problem.d)])
    for clip in (0.1, 0.5, 1.0):
        residuals = problem.residuals(theta)
        factor = np.minimum(1, clip / np.maximum(np.abs(residuals) * problem.lengths, 1e-300))
        lengths = np.abs(residuals) * factor * problem.lengths
        yield report(f"{label}, gradients clipped to {clip}", lengths.max() <= clip * (1 + 1e-9), f"{lengths.max():.4f}")
        same = np.allclose(((residuals * factor)[:, :, None] * problem.x * problem.counts[:, None]).sum(1), problem.gradient(theta, clip))
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


def noise(problem, label):
    """Measures the mu^2 that every rival spends, from the scatter of its first noisy matrix and vector over 4,000 seeds."""
    d, budget, seeds = problem.d, Budget(3.0), 4000
    variance = symmetric(np.random.default_rng(3), 200_000, d).var(0) / (1 + np.eye(d))
    yield report(f"{label}, variance of symmetric noise", np.abs(variance - 1).max() < 0.03, f"{np.abs(variance - 1).max():.3f}")

    def spent(vectors, sensitivity):
        return sensitivity**2 / (np.trace(np.cov(vectors.T)) / d / OWNERS)

    def compare(name, found, claimed):
        return report(f"{label}, mu^2 of {name}", abs(found / claimed - 1) < 0.08, f"{found:.4f} of {claimed:.4f}")

    steps, share, clip = 4, 0.25, 0.5
    length, common = 2 * clip * problem.radius, {"steps": steps, "share": share, "clip": clip, "limit": 1, "cap": 5.0}
    seen = spied(rivals.newton_direction, problem, budget, seeds, shift=0.1, **common)
    yield compare("gradients of the direction method", steps * spent(seen[0][1], length), (1 - share) * budget.mu**2)
    yield compare("the direction", direction_spent(problem, budget, seeds, common), share * budget.mu**2)
    once = rivals.gradient_descent(problem, budget, np.random.default_rng(8), seeds, steps=1, rate=1.0, clip=clip, average=False)
    yield compare("DP-GD", spent(once * problem.curvature, length), budget.mu**2)
    matrices, steps_taken = captured(problem, budget, seeds, common)
    bound = problem.bound_of_weights(5.0) * max(problem.gram_sensitivity, problem.radius**2 / math.sqrt(2) if problem.kind != "linear" else 0)
    released = 1 if problem.kind == "linear" else steps
    yield compare("Hessians", released * bound**2 / (upper_variance(matrices) / OWNERS), share * budget.mu**2)
    yield compare("gradients of Newton", steps * spent(steps_taken, length), (1 - share) * budget.mu**2)
    if problem.kind != "linear":
        return
    (matrices, vectors), *_ = spied(rivals.ada_ssp, problem, budget, seeds, eigenvalue=0, gram=0.3, limit=1, outcome=1, ridge=0)
    yield compare("AdaSSP's X'X", problem.gram_sensitivity**2 / (upper_variance(matrices) / OWNERS), 0.3 * budget.mu**2)
    yield compare("AdaSSP's X'y", spent(vectors, 2 * problem.radius), 0.7 * budget.mu**2)
    for limit, eigenvalue in ((1, 0), (0.8, 0.05)):
        (matrices, vectors), *_ = spied(rivals.hessian_mixing, problem, budget, seeds, steps=2, rows=6, sketch=0.5, eigenvalue=eigenvalue, limit=limit, clip=0.4)
        gaussian = 0.5 * budget.mu_without(0.1 if eigenvalue else 0.0) ** 2
        yield compare("the moments of IHM", 2 * spent(vectors, 2 * limit * problem.radius * 0.4), gaussian * (1 - eigenvalue))
        gamma = (limit * problem.radius) ** 2 / budget.ratio(2 * 6 * d, math.sqrt(gaussian), 0.1 if eigenvalue else 0.0)
        plain = sum(rivals.gram_of(part, limit * problem.radius) for part in problem.parts)
        least = np.linalg.eigvalsh(matrices.mean(0) - plain)
        # At this budget no eigenvalue of an owner is known to be above 0, so every owner adds gamma.
        yield report(f"{label}, ridge of the sketches", np.abs(least / (OWNERS * gamma) - 1).max() < 0.08, f"{least[0]:.1f} to {least[-1]:.1f} of {OWNERS * gamma:.1f}")


def upper_variance(matrices):
    """Returns the mean variance of the elements above the diagonal, over seeds."""
    rows, columns = np.triu_indices(matrices.shape[1], 1)
    return matrices[:, rows, columns].var(0).mean()


def spied(rival, problem, budget, seeds, **settings):
    """Returns the matrices and vectors of the linear systems that a rival solves."""
    seen, kept = [], rivals.solved
    rivals.solved = lambda matrices, vectors: seen.append((matrices.copy(), vectors.copy())) or kept(matrices, vectors)
    try:
        rival(problem, budget, np.random.default_rng(7), seeds, **settings)
    finally:
        rivals.solved = kept
    return seen


def direction_spent(problem, budget, seeds, common):
    """Returns the mu^2 of the directions of `newton_direction` for one holder, from the first step less the direction without noise."""
    taken, exact, kept = [], [], (rivals.shortened, rivals.solved)
    rivals.shortened = lambda step: taken.append(step) or step
    rivals.solved = lambda matrices, vectors: exact.append((kept[1](matrices, vectors), vectors)) or exact[-1][0]
    try:
        rivals.newton_direction(problem, budget, np.random.default_rng(10), seeds, shift=0.1, **common)
    finally:
        rivals.shortened, rivals.solved = kept
    most = problem.bound_of_weights(common["cap"]) * problem.radius**2
    shift = 0.1 * problem.n * most
    sensitivities = np.linalg.norm(exact[0][1], axis=1, keepdims=True) * most / (shift**2 + most * shift)
    return common["steps"] / ((taken[0] - exact[0][0]) / sensitivities).var()


def captured(problem, budget, seeds, common):
    """Returns the noisy Hessians of the first step of `newton`, and the noisy gradients that it multiplies by their inverse."""
    hessians, inverses, gradients = [], [], []
    kept, eigh = rivals.shortened, np.linalg.eigh

    def take(matrices):
        values, vectors = eigh(matrices)
        hessians.append(matrices)
        inverses.append((np.maximum(values, 1e-3), vectors))
        return values, vectors

    def undo(step):
        values, vectors = inverses[-1]
        raised = (vectors * (values + problem.ridge)[:, None, :]) @ vectors.transpose(0, 2, 1)
        gradients.append((raised @ step[:, :, None])[:, :, 0])
        return step

    rivals.shortened, np.linalg.eigh = undo, take
    try:
        # A floor of 0 raises negative eigenvalues to 0; seeds with one are left out.
        with np.errstate(all="ignore"):
            rivals.newton(problem, budget, np.random.default_rng(9), seeds, floor=0.0, **common)
    finally:
        rivals.shortened, np.linalg.eigh = kept, eigh
    good = inverses[0][0].min(1) > 2e-3
    return hessians[0], gradients[0][good]


def accounting():
    for epsilon in (0.5, 1, 3, 8):
        mu = mu_at(epsilon, 1e-6)
        yield report(f"mu at epsilon {epsilon}", abs(mu / mu_of(epsilon) - 1) < 1e-6 and abs(epsilon_at(mu, 1e-6) / epsilon - 1) < 1e-6, f"{mu:.5f}")
        yield report(f"delta without a sketch at {epsilon}", abs(sketch_delta(epsilon, 0, 0.1, mu) / gaussian_delta(epsilon, mu) - 1) < 1e-6, f"{sketch_delta(epsilon, 0, 0.1, mu):.4e}")
        for rows in (4, 100):
            ratio = sketch_ratio(epsilon, 1e-6, rows, 0.6 * mu)
            exact, bound = sketch_delta(epsilon, rows, ratio, 0.6 * mu), renyi_delta(epsilon, rows, ratio, 0.6 * mu)
            yield report(f"delta of {rows} sketched rows at {epsilon}", abs(exact / 1e-6 - 1) < 1e-5 and 1 < bound / exact < 30, f"{exact:.3e}, Renyi {bound:.3e}")
    rng = np.random.default_rng(6)
    for rows, ratio, mu, epsilon in [(10, 0.2, 0.5, 1.0), (60, 0.1, 0.7, 2.0), (3, 0.4, 0.3, 1.5)]:
        first, second = rng.chisquare(rows, (2, 2_000_000))
        loss = rows / 2 * math.log1p(-(ratio**2)) + first * ratio / (1 - ratio) / 2 - second * ratio / (1 + ratio) / 2 + mu**2 / 2 + mu * rng.standard_normal(len(first))
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
        worst = max(worst, divergence / ((alpha * math.log1p(-(ratio**2)) - math.log1p(-((alpha * ratio) ** 2))) / (2 * (alpha - 1))))
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
        for part in (limits, sensitivities, noise):
            results += list(part(problem, label))
    print(f"{sum(results)} of {len(results)} checks passed")
    return 0 if all(results) else 1
