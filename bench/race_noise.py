"""Measures what the rivals of bench/race.py spend: their noise against the sensitivities of their releases, for
bench/race_checks.py."""

import math

import numpy as np

import rivals
from race_problem import OWNERS
from rivals import Budget, symmetric


def noise(problem, label, report):
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
    bound = problem.bound_of_weights(5.0) * max(
        problem.gram_sensitivity, problem.radius**2 / math.sqrt(2) if problem.kind != "linear" else 0
    )
    released = 1 if problem.kind == "linear" else steps
    yield compare("Hessians", released * bound**2 / (upper_variance(matrices) / OWNERS), share * budget.mu**2)
    yield compare("gradients of Newton", steps * spent(steps_taken, length), (1 - share) * budget.mu**2)
    if problem.kind != "linear":
        return
    (matrices, vectors), *_ = spied(rivals.ada_ssp, problem, budget, seeds, eigenvalue=0, gram=0.3, limit=1, outcome=1, ridge=0)
    yield compare("AdaSSP's X'X", problem.gram_sensitivity**2 / (upper_variance(matrices) / OWNERS), 0.3 * budget.mu**2)
    yield compare("AdaSSP's X'y", spent(vectors, 2 * problem.radius), 0.7 * budget.mu**2)
    for limit, eigenvalue in ((1, 0), (0.8, 0.05)):
        (matrices, vectors), *_ = spied(
            rivals.hessian_mixing,
            problem,
            budget,
            seeds,
            steps=2,
            rows=6,
            sketch=0.5,
            eigenvalue=eigenvalue,
            limit=limit,
            clip=0.4,
        )
        gaussian = 0.5 * budget.mu_without(0.1 if eigenvalue else 0.0) ** 2
        yield compare("the moments of IHM", 2 * spent(vectors, 2 * limit * problem.radius * 0.4), gaussian * (1 - eigenvalue))
        gamma = (limit * problem.radius) ** 2 / budget.ratio(2 * 6 * d, math.sqrt(gaussian), 0.1 if eigenvalue else 0.0)
        plain = sum(rivals.gram_of(part, limit * problem.radius) for part in problem.parts)
        least = np.linalg.eigvalsh(matrices.mean(0) - plain)
        # At this budget no eigenvalue of an owner is known to be above 0, so every owner adds gamma.
        yield report(
            f"{label}, ridge of the sketches",
            np.abs(least / (OWNERS * gamma) - 1).max() < 0.08,
            f"{least[0]:.1f} to {least[-1]:.1f} of {OWNERS * gamma:.1f}",
        )


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
    """Returns the mu^2 of the directions of `newton_direction` for one holder, from the first step less the direction
    without noise."""
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
    """Returns the noisy Hessians of the first step of `newton`, and the noisy gradients that it multiplies by their
    inverse."""
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
