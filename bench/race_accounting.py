"""Accounts for the privacy of the rivals in bench/race.py: Gaussian releases, and Gaussian sketches beside them.

All guarantees are (epsilon, delta) under replacement of one record. A Gaussian release with sensitivity D and noise sd
sigma is mu-GDP with mu = D / sigma; the mu of an adaptive sequence is the root of the sum of mu^2 (Dong, Roth and Su
2022, corollary 3.3), and delta at epsilon is Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2) (Balle and Wang
2018, theorem 8).

A Gaussian sketch releases k rows, each N(0, M) with M = X'X + s^2 I. Let a record x be replaced by y, both at most R
long, and M be at least gamma I. Relative to M the other matrix is I - aa' + bb', with |a|^2 and |b|^2 at most q = R^2 /
gamma. Its eigenvalues other than 1 are within [1 - q, 1 + q]: with c = a'b they are 1 + ((B - A) +- sqrt((A + B)^2 - 4
c^2)) / 2, A = |a|^2, B = |b|^2, which is furthest from 1 at c = 0 and A = B = q. A pair N(0, 1), N(0, 1 + e) is a noisy
version of a pair with the same sign and larger |e|. So the pair N(0, I) and N(0, diag(1 - q, 1 + q)) dominates one row,
and its product dominates k rows. Lev et al. (2025) account for the removal of one record, by Renyi divergences;
`sketch_delta` is the exact delta of the dominating pair of a replacement.
"""

import math

import numpy as np
from scipy import optimize, stats


def gaussian_delta(epsilon, mu):
    """Returns delta at epsilon of a mu-GDP release."""
    first, second = stats.norm.logcdf(-epsilon / mu + mu / 2), epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2)
    return math.exp(first) - math.exp(second)


def epsilon_at(mu, delta):
    """Returns the least epsilon at which a mu-GDP release has at most `delta`."""
    return optimize.brentq(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, mu**2 / 2 + 20 * mu)


def mu_at(epsilon, delta):
    """Returns the largest mu whose delta at epsilon is at most `delta`."""
    return optimize.brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, 1e-6, 1e4, xtol=1e-13)


def sketch_delta(epsilon, rows, q, mu):
    """Returns delta at epsilon of `rows` sketched rows at ratio q together with a mu-GDP release."""
    return math.exp(log_sketch_delta(epsilon, rows, q, mu))


def log_sketch_delta(epsilon, rows, q, mu):
    """Returns the logarithm of delta at epsilon of `rows` sketched rows at ratio q together with a mu-GDP release.

    With K the cumulant function of the privacy loss, delta is the integral of exp(K(z) - z epsilon) / (z (z + 1)) over a line
    Re z = c > 0, divided by 2 pi i: the inverse Laplace transform of (1 - exp(epsilon - loss))+. c is the saddle point."""

    def cumulant(z):
        rest = z * (z + 1) * mu**2 / 2
        if rows == 0:
            return rest
        return rest + rows / 2 * (z * np.log1p(-q * q) - np.log(1 - z * q / (1 - q)) - np.log(1 + z * q / (1 + q)))

    most = (1 - q) / q if rows else 1e7
    exponent = lambda z: float(cumulant(z) - z * epsilon - math.log(z * (z + 1)))
    found = optimize.minimize_scalar(
        lambda u: exponent(math.exp(u)),
        bounds=(math.log(1e-6), math.log(most * (1 - 1e-9))),
        method="bounded",
        options={"xatol": 1e-10},
    )
    c = math.exp(found.x)
    step = 1e-3 * min(c, most - c)
    curvature = (exponent(c + step) - 2 * exponent(c) + exponent(c - step)) / step**2
    t = np.linspace(0, 40 / math.sqrt(curvature), 4001)
    z = c + 1j * t
    values = np.exp(cumulant(z) - z * epsilon - np.log(z * (z + 1)) - exponent(c)).real
    return exponent(c) + math.log(np.trapezoid(values, t) / math.pi)


def renyi_delta(epsilon, rows, q, mu):
    """Returns an upper bound of `sketch_delta`, from Renyi divergences (Canonne, Kamath and Steinke 2020, proposition 12)."""
    divergence = (
        lambda alpha: rows / (2 * (alpha - 1)) * (alpha * math.log1p(-q * q) - math.log1p(-((alpha * q) ** 2)))
        + alpha * mu**2 / 2
    )
    log = lambda alpha: (alpha - 1) * (divergence(alpha) - epsilon) + (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha)
    return math.exp(min(log(1 + extra) for extra in np.geomspace(1e-3, 0.999 * (1 / q - 1), 4000)))


def sketch_ratio(epsilon, delta, rows, mu):
    """Returns the largest q at which `rows` sketched rows and a mu-GDP release are (epsilon, delta)."""
    if rows == 0 or gaussian_delta(epsilon, mu) >= delta:
        raise ValueError(f"no budget remains for a sketch: rows = {rows}, mu = {mu}")
    excess = lambda u: log_sketch_delta(epsilon, rows, math.exp(u), mu) - math.log(delta)
    low = math.log(1e-7)
    # The search starts at the ratio whose Gaussian limit has half of the remainder, as delta overflows far above the solution.
    high = min(0.5 * math.log((mu_at(epsilon, delta) ** 2 - mu**2) / rows) - 0.7, -0.5)
    while excess(high) < 0 and high < -1e-6:
        low, high = high, min(high + 0.1, high / 2)
    return math.exp(optimize.brentq(excess, low, high, xtol=1e-9) if excess(high) > 0 else high)
