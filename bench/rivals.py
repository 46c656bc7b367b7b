"""Implements the rivals of bench/race.py: AdaSSP, DP gradient descent, two Newton methods and Iterative Hessian Mixing.

Each runs with three owners. An owner adds noise to its own sum, with the sensitivities of bench/race_problem.py, so a sum
has the root of 3 times the noise of one owner. The settings of each are a grid (bench/race_settings.py), from which
bench/race.py takes the ones with the least true error. `Budget` has the total mu, the epsilon and the delta. All
functions return an array of estimates, one per seed. The prior's gradient is public.
"""

import math

import numpy as np
from scipy import stats

from race_accounting import epsilon_at, mu_at, sketch_ratio
from race_problem import LOCAL

LONGEST_STEP = 5.0
MISSED = 0.1


class Budget:
    """Epsilon, delta and the mu of a Gaussian release that spends both."""

    def __init__(self, epsilon=None, delta=1e-6, mu=None):
        self.epsilon, self.delta = epsilon, delta
        self.mu = mu_at(epsilon, delta) if mu is None else mu
        if epsilon is None:
            self.epsilon = epsilon_at(mu, delta)
        self.ratios, self.mus = {}, {}

    def mu_without(self, missed):
        """Returns the mu of epsilon and the share 1 - missed of delta."""
        if missed not in self.mus:
            self.mus[missed] = mu_at(self.epsilon, (1 - missed) * self.delta) if missed else self.mu
        return self.mus[missed]

    def ratio(self, rows, mu, missed):
        """Returns the ratio q of a sketch of `rows` rows beside a mu-GDP release, at delta less the probability of a
        missed eigenvalue."""
        key = rows, round(mu, 12), missed
        if key not in self.ratios:
            self.ratios[key] = sketch_ratio(self.epsilon, (1 - missed) * self.delta, rows, mu)
        return self.ratios[key]


def symmetric(rng, seeds, d):
    """Returns symmetric noise of variance 1, and 2 on the diagonal."""
    square = rng.standard_normal((seeds, d, d))
    return (square + square.transpose(0, 2, 1)) / math.sqrt(2)


def solved(matrices, vectors):
    """Returns the solutions of linear systems; those of singular matrices are not finite."""
    try:
        return np.linalg.solve(matrices, vectors[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return np.array([np.linalg.lstsq(m, v, rcond=None)[0] for m, v in zip(matrices, vectors)])


def ada_ssp(problem, budget, rng, seeds, eigenvalue, gram, limit, outcome, ridge):
    """AdaSSP (Wang 2018, algorithm 2): noisy X'X, X'y and least eigenvalue, and a ridge that adapts to them.

    `eigenvalue` and `gram` are shares of mu^2, and X'y has the rest. Rows are shortened to `limit` radii with their
    outcomes, which leaves the model as it is; outcomes are then held to [-outcome, outcome]. The ridge is `ridge` times
    the paper's bound of the noise's norm, root of (d log(2 d^2 / 0.05)) sds, less the noisy eigenvalue; a share of 0 for
    the eigenvalue means a ridge that does not adapt. The eigenvalue of the sum is not known to any owner: the sum of the
    owners' eigenvalues is a lower bound of it."""
    radius = limit * problem.radius
    sensitivity = problem.gram_sensitivity if limit >= 1 else radius**2
    shrink = np.minimum(1, radius / problem.lengths)
    x, y = problem.x * shrink[:, None], np.clip(problem.y * shrink, -outcome, outcome)
    sd = LOCAL * sensitivity / (math.sqrt(gram) * budget.mu)
    noisy_gram = (x.T * problem.counts) @ x + sd * symmetric(rng, seeds, problem.d)
    noisy_moments = (y * problem.counts) @ x + LOCAL * 2 * radius * outcome / (
        math.sqrt(1 - eigenvalue - gram) * budget.mu
    ) * rng.standard_normal((seeds, problem.d))
    least = np.zeros(seeds)
    if eigenvalue > 0:
        own = sum(np.linalg.eigvalsh(gram_of(part, radius))[0] for part in problem.parts)
        sd_least = LOCAL * radius**2 / (math.sqrt(eigenvalue) * budget.mu)
        # The paper lowers the eigenvalue to a bound that holds with probability 1 - delta / 3.
        least = np.maximum(own + sd_least * (rng.standard_normal(seeds) - stats.norm.isf(budget.delta / 3)), 0)
    added = np.maximum(ridge * math.sqrt(problem.d * math.log(2 * problem.d**2 / 0.05)) * sd - least, 0) + problem.ridge
    return solved(noisy_gram + added[:, None, None] * np.eye(problem.d), noisy_moments)


def gram_of(part, radius):
    x = part[0] * np.minimum(1, radius / np.linalg.norm(part[0], axis=1))[:, None]
    return x.T @ x


def gradient_descent(problem, budget, rng, seeds, steps, rate, clip, average):
    """DP gradient descent with full batches (Bassily et al. 2014; clipping of Abadi et al. 2016), from 0.

    Gradients are clipped to `clip` radii. The rate is relative to the largest eigenvalue of the Hessian at the mode,
    which is given to the rival. The estimate is the last iterate, or with `average` the mean of the last half of them."""
    clip = clip * problem.radius
    sd = LOCAL * 2 * clip * math.sqrt(steps) / budget.mu
    theta, total, count = np.zeros((seeds, problem.d)), 0.0, 0
    for step in range(steps):
        noisy = problem.gradient(theta, clip) + sd * rng.standard_normal(theta.shape) - problem.ridge * theta
        theta = np.clip(theta + rate / problem.curvature * noisy, -1e3, 1e3)
        if 2 * step >= steps - 1:
            total, count = total + theta, count + 1
    return total / count if average else theta


def shortened(step):
    return step * np.minimum(1, LONGEST_STEP / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300))


def newton(problem, budget, rng, seeds, steps, share, clip, limit, floor, upper=False, cap=math.inf):
    """Newton's method with noisy gradients and noisy Hessians (Avella-Medina, Bradshaw and Loh 2021, equation of noisy
    Newton), from 0.

    Hessians have a share of mu^2, gradients the rest. Eigenvalues of a noisy Hessian are raised to `floor` times its
    noise's sd times the root of d. `upper` takes the quadratic upper bound of Ganesh et al. (2023) in place of the
    Hessian. The Hessian of a linear regression does not change, so it is released once."""
    clip, radius = clip * problem.radius, limit * problem.radius
    bound = problem.bound_of_weights(cap)
    sensitivity = bound * (max(problem.gram_sensitivity, problem.radius**2 / math.sqrt(2)) if limit >= 1 else radius**2)
    sd = LOCAL * 2 * clip * math.sqrt(steps / (1 - share)) / budget.mu
    theta, inverse = np.zeros((seeds, problem.d)), None
    once = problem.kind == "linear"
    if once:
        sensitivity = problem.gram_sensitivity if limit >= 1 else radius**2
    sd_hessian = LOCAL * sensitivity * math.sqrt((1 if once else steps) / share) / budget.mu
    for _ in range(steps):
        if inverse is None or not once:
            values, vectors = np.linalg.eigh(
                problem.hessian(theta, radius, cap, upper) + sd_hessian * symmetric(rng, seeds, problem.d)
            )
            values = np.maximum(values, floor * sd_hessian * math.sqrt(problem.d)) + problem.ridge
            inverse = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
        noisy = problem.gradient(theta, clip) + sd * rng.standard_normal(theta.shape) - problem.ridge * theta
        theta = theta + shortened((inverse @ noisy[:, :, None])[:, :, 0])
    return theta


def newton_direction(problem, budget, rng, seeds, steps, share, clip, limit, shift, upper=False, cap=math.inf):
    """Newton's method with double noise (Ganesh et al. 2023, algorithm with added regularisation): noisy gradient g,
    noisy direction, from 0.

    The direction is (H + s I)^-1 g plus noise of sensitivity |g| b R^2 / (s^2 + b R^2 s), where a record adds at most b
    R^2 to H: with D the matrix without the record, the record a changes the inverse by -D^-1 aa' D^-1 / (1 + a'D^-1 a),
    of norm at most (|a|^2 / s^2) / (1 + |a|^2 / s); the replacement's change has the same sign, so the norm of the
    difference is at most the larger one. `shift` is s in units of n b R^2; the paper sets it by a noisy trace. No owner
    holds the inverse of the sum: the direction has the noise of one trusted holder of all records, which is more trust
    than the other rivals and Conclave have. Gradients have the noise of three owners."""
    clip, radius = clip * problem.radius, limit * problem.radius
    most = problem.bound_of_weights(cap) * radius**2
    shift = shift * problem.n * most
    sd = LOCAL * 2 * clip * math.sqrt(steps / (1 - share)) / budget.mu
    theta = np.zeros((seeds, problem.d))
    for _ in range(steps):
        noisy = problem.gradient(theta, clip) + sd * rng.standard_normal(theta.shape) - problem.ridge * theta
        direction = solved(problem.hessian(theta, radius, cap, upper) + shift * np.eye(problem.d), noisy)
        sensitivity = np.linalg.norm(noisy, axis=1, keepdims=True) * most / (shift**2 + most * shift)
        direction = direction + sensitivity * math.sqrt(steps / share) / budget.mu * rng.standard_normal(theta.shape)
        theta = theta + shortened(direction)
    return theta


def hessian_mixing(problem, budget, rng, seeds, steps, rows, sketch, eigenvalue, limit, clip):
    """Iterative Hessian Mixing (Lev et al. 2026, arXiv 2601.07545): Newton steps of Gaussian sketches of X and noisy X'r,
    from 0.

    Of mu^2 the moments X'r have 1 - sketch, `eigenvalue` of that goes to the least eigenvalue; the sketches have what
    remains of delta, by `sketch_ratio`. An owner sketches S X_i + s_i N with S of rows x n_i normals, where s_i^2 lifts a
    lower bound of its least eigenvalue to gamma = R^2 / q. The bound holds but for a tenth of delta. The Gram matrices of
    the three sketches are added, which has three times the degrees of freedom of one sketch of all records. Rows are
    shortened to `limit` radii, and residuals clipped to [-clip, clip] as in the paper. A Gram matrix of a sketch is
    sampled as the Wishart matrix that it is. `rows` is in units of d; 0 means the paper's max(6 d, 6 log(4 steps / rho))
    with rho a tenth of delta."""
    radius, d = limit * problem.radius, problem.d
    rows = math.ceil(rows * d) if rows else int(max(6 * d, 6 * math.log(4 * steps / (budget.delta / 10))))
    missed = MISSED if eigenvalue > 0 else 0.0
    gaussian = (1 - sketch) * budget.mu_without(missed) ** 2
    gamma = radius**2 / budget.ratio(rows * steps, math.sqrt(gaussian), missed)
    sd = LOCAL * 2 * radius * clip * math.sqrt(steps / (gaussian * (1 - eigenvalue)))
    roots = []
    for part in problem.parts:
        gram = gram_of(part, radius)
        values, vectors = np.linalg.eigh(gram)
        known = np.zeros(seeds)
        if eigenvalue > 0:
            sd_least = radius**2 / math.sqrt(gaussian * eigenvalue)
            known = np.maximum(values[0] + sd_least * (rng.standard_normal(seeds) - stats.norm.isf(MISSED * budget.delta)), 0)
        lifted = values + np.maximum(gamma - known, 0)[:, None]
        roots.append(vectors * np.sqrt(lifted)[:, None, :])
    shrink = np.minimum(1, radius / problem.lengths)
    x, y = problem.x * shrink[:, None], problem.y * shrink
    theta = np.zeros((seeds, d))
    for _ in range(steps):
        hessian = np.zeros((seeds, d, d))
        for root in roots:
            normals = rng.standard_normal((seeds, rows, d))
            hessian += root @ (normals.transpose(0, 2, 1) @ normals / rows) @ root.transpose(0, 2, 1)
        residuals = np.clip(y - theta @ x.T, -clip, clip) * problem.counts
        noisy = residuals @ x + sd * rng.standard_normal((seeds, d)) - problem.ridge * theta
        theta = np.clip(theta + solved(hessian, noisy), -1e6, 1e6)
    return theta
