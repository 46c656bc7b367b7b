"""Exact posteriors without privacy, in closed form."""

import math


def beta(successes, records):
    """Returns `(mean, sd)` of a proportion under beta(1, 1)."""
    a, b = 1 + successes, 1 + records - successes
    return a / (a + b), math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))


def inverse(matrix):
    """Inverts a matrix by Gauss-Jordan elimination with pivoting."""
    d = len(matrix)
    rows = [list(row) + [float(i == j) for j in range(d)] for i, row in enumerate(matrix)]
    for i in range(d):
        pivot = max(range(i, d), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(d):
            if k != i:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i])]
    return [row[d:] for row in rows]


def linear(design, outcomes, sd, prior_sd=2.5):
    """Returns means and sds of the coefficients of a linear regression with known error."""
    d = len(design[0])
    gram = [[sum(row[i] * row[j] for row in design) / sd**2 + (i == j) / prior_sd**2 for j in range(d)] for i in range(d)]
    right = [sum(row[i] * y for row, y in zip(design, outcomes)) / sd**2 for i in range(d)]
    covariance = inverse(gram)
    means = [sum(c * r for c, r in zip(row, right)) for row in covariance]
    return means, [math.sqrt(covariance[i][i]) for i in range(d)]


def banana(first, second, bend, precisions):
    """Returns the posterior of `theta_1` and `theta_2` under flat priors: `theta_1` and `theta_2 + a theta_1^2` are normal given the records."""
    n = len(first)
    mean = (sum(first) / n, sum(second) / n)
    variance = [1 / (n * precision) for precision in precisions]
    m, v = mean[0], variance[0]
    of_square = (m * m + v, 2 * v * v + 4 * m * m * v)
    return {
        "theta_1": (m, math.sqrt(v)),
        "theta_2": (mean[1] - bend * of_square[0], math.sqrt(variance[1] + bend**2 * of_square[1])),
    }
