"""States a regression of bench/real_studies.py as the rivals of bench/race.py see it: bounded records, and the estimate
without privacy.

A record is x = (1, predictors), scaled by its declared bounds as Conclave scales it: a number to [-1, 1], a binary column
to 0 or 1. So |x| <= radius = root of d. The outcome of a linear regression is scaled to [-1, 1]; other outcomes are held
to their bounds.

Sensitivities are L2, for the replacement of one record by any other within the bounds (`bench/race_checks.py` tests each
by search):

- gradients clipped to length c: |g - h| <= 2 c;
- moments X'y, or X'r with residuals held to [-c, c], and rows at most R long: |x r - z s| <= 2 R c;
- Gram matrix of rows at most R long, symmetric noise that is wider by the root of 2 on the diagonal: the distance in sds
  of the noise is |xx' - zz'|_F / root of 2, and |xx' - zz'|_F^2 = |x|^4 + |z|^4 - 2 (x'z)^2 <= 2 R^4, so R^2;
- Gram matrix of rows with no limit but the declared bounds: the maximum over pairs of corners. The square above is convex
  in each coordinate x_j, as its second derivative 4 |x|^2 + 8 x_j^2 - 4 z_j^2 is at least 0: |x|^2 >= 1 by the
  intercept, and z_j^2 <= 1;
- Hessian, a Gram matrix with weights in [0, b]: |u xx' - v zz'|_F^2 is convex in u and v, so b max(Gram's, R^2 / root of
  2);
- least eigenvalue of a Gram matrix: R^2, as |xx' - zz'| <= max(|x|^2, |z|^2) and by Weyl's inequality.
"""

import itertools
import math

import numpy as np
from scipy import special

from real_studies import BINARY, PRIOR_SD

OWNERS = 3
LOCAL = math.sqrt(OWNERS)


class Problem:
    """The records of a study with its posterior's mode and sds; `dispersion` is the negative binomial's, given to the
    rivals."""

    def __init__(self, study, mean, sd):
        self.kind, x = study.kind, study.design()
        self.d, self.n, self.sd = x.shape[1], len(x), np.asarray(sd)[: x.shape[1]]
        if self.kind == "linear":
            y = study.coded(study.outcome)
        else:
            low, high = study.columns[study.outcome] if study.columns[study.outcome] != BINARY else (0, 1)
            y = np.clip(study.frame[study.outcome].to_numpy(float), low, high)
        offset = (
            np.log(np.clip(study.frame[study.exposure].to_numpy(float), *study.columns[study.exposure]))
            if study.exposure
            else np.zeros(self.n)
        )
        self.dispersion = mean[self.d] if self.kind == "negative_binomial" else 0.0
        # A linear regression's prior counts by the variance of its residuals, which is given to the rivals.
        self.ridge = (mean[self.d] ** 2 if self.kind == "linear" else 1.0) / PRIOR_SD**2
        self.bounds = [(1, 1)] + [(0, 1) if study.columns[name] == BINARY else (-1, 1) for name in study.predictors]
        self.radius = math.sqrt(self.d)
        self.parts = [(x[part], y[part]) for part in np.array_split(np.arange(self.n), OWNERS)]
        # Equal records are computed once.
        rows, self.counts = np.unique(np.column_stack([x, y, offset]), axis=0, return_counts=True)
        self.x, self.y, self.offset = np.ascontiguousarray(rows[:, : self.d]), rows[:, self.d], rows[:, self.d + 1]
        self.products = (self.x[:, :, None] * self.x[:, None, :]).reshape(len(self.x), -1)
        self.lengths = np.linalg.norm(self.x, axis=1)
        self.gram_sensitivity = self.corner_distance() / math.sqrt(2)
        self.mode = self.newton(np.asarray(mean)[: self.d])
        self.curvature = np.linalg.eigvalsh(self.hessian(self.mode[None, :])[0])[-1]

    def corner_distance(self):
        """Returns the largest |xx' - zz'|_F over pairs of corners of the declared bounds."""
        corners = np.array(list(itertools.product(*(sorted(set(pair)) for pair in self.bounds))), dtype=float)
        products = corners @ corners.T
        squares = np.diag(products) ** 2
        return math.sqrt((squares[:, None] + squares[None, :] - 2 * products**2).max())

    def means(self, theta):
        """Returns the mean of every distinct record, for an array of coefficients."""
        eta = theta @ self.x.T + self.offset
        if self.kind == "linear":
            return eta
        return special.expit(eta) if self.kind == "logistic" else np.exp(np.clip(eta, -30, 12))

    def residuals(self, theta, means=None):
        """Returns the derivative of the log likelihood of every distinct record in its linear predictor."""
        means = self.means(theta) if means is None else means
        return (self.y - means) / (1 + self.dispersion * means)

    def weights(self, theta, cap=math.inf, upper=False):
        """Returns the weights of the records in the Hessian, at most `bound_of_weights(cap)`; `upper`: those of the
        quadratic upper bound."""
        if self.kind == "linear":
            return np.ones((len(theta), len(self.x)))
        means = self.means(theta)
        if self.kind == "logistic":
            if upper:
                eta = np.maximum(np.abs(theta @ self.x.T), 1e-6)
                return np.tanh(eta / 2) / (2 * eta)
            return means * (1 - means)
        return np.minimum(means / (1 + self.dispersion * means), cap)

    def bound_of_weights(self, cap):
        return {"linear": 1.0, "logistic": 0.25}.get(self.kind, cap)

    def gradient(self, theta, clip=math.inf):
        """Returns the sum of the records' gradients, each clipped to a length of `clip`, for an array of coefficients."""
        residuals = self.residuals(theta)
        if clip < math.inf:
            residuals = residuals * np.minimum(1, clip / np.maximum(np.abs(residuals) * self.lengths, 1e-300))
        return (residuals * self.counts) @ self.x

    def hessian(self, theta, limit=math.inf, cap=math.inf, upper=False):
        """Returns the sum of w xx' over the records, with rows shortened to `limit`, for an array of coefficients."""
        weights = self.weights(theta, cap, upper) * (self.counts * np.minimum(1, (limit / self.lengths) ** 2))
        return (weights @ self.products).reshape(len(theta), self.d, self.d)

    def newton(self, start):
        """Returns the posterior's mode, by Newton's method without noise."""
        theta = start[None, :].copy()
        for _ in range(50):
            step = np.linalg.solve(
                self.hessian(theta)[0] + self.ridge * np.eye(self.d), self.gradient(theta)[0] - self.ridge * theta[0]
            )
            theta += step
            if np.abs(step).max() < 1e-12:
                break
        return theta[0]

    def errors(self, theta):
        """Returns (estimate - mode) / posterior sd. An estimate that is not finite counts as 1e6 sds off."""
        errors = (theta - self.mode) / self.sd
        return np.where(np.isfinite(errors), np.clip(errors, -1e6, 1e6), 1e6)
