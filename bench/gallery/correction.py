"""The correction of Barker's test by ridge regression (Seita, Pan, Chen & Canny 2017), which Heikkilä et al. compare theirs with."""

import math

# Half width of the interval, ridge and half the number of intervals of Seita et al.
HALF, RIDGE, CELLS = 10.0, 10.0, 4000
# Half the number of intervals here. The ridge is scaled so that the continuous problem is the same: it goes by the square of a cell's width.
OURS = 200


def logistic(y):
    """Returns the standard logistic density."""
    small = math.exp(-abs(y))
    return small / (1 + small) ** 2


def logistic_cdf(y):
    return 1 / (1 + math.exp(-y)) if y > -700 else 0.0


def normal(x, sd):
    return math.exp(-0.5 * (x / sd) ** 2) / (sd * math.sqrt(2 * math.pi))


def normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def solve(matrix, right):
    """Solves a positive definite system by Cholesky's factors."""
    n = len(right)
    low = [[0.0] * n for _ in range(n)]
    for i in range(n):
        row = low[i]
        for j in range(i + 1):
            other = low[j]
            value = matrix[i][j] - sum(map(float.__mul__, row[:j], other[:j]))
            row[j] = math.sqrt(value) if i == j else value / other[j]
    half = []
    for i in range(n):
        half.append((right[i] - sum(map(float.__mul__, low[i][:i], half))) / low[i][i])
    out = [0.0] * n
    for i in reversed(range(n)):
        out[i] = (half[i] - sum(low[k][i] * out[k] for k in range(i + 1, n))) / low[i][i]
    return out


def by_ridge(variance, cells=OURS):
    """Returns the points and weights of the correction, which may be negative, by ridge regression on symmetric functions."""
    step, sd = HALF / cells, math.sqrt(variance)
    points = [step * k for k in range(cells + 1)]
    # Row y, column x of the convolution with the normal, with the mirrored point added: the unknown is the weight at x and at -x.
    rows = [[normal(y - x, sd) + (normal(y + x, sd) if x else 0.0) for x in points] for y in points]
    # Rows but that of 0 count twice, and so does the penalty of each column but the first.
    twice = [1.0] + [2.0] * cells
    columns = list(zip(*rows))
    weighted = [[t * value for t, value in zip(twice, column)] for column in columns]
    ridge = RIDGE * (CELLS / cells) ** -2
    gram = [[sum(map(float.__mul__, a, b)) + (i == j) * ridge * twice[i] for j, b in enumerate(columns[: i + 1])] for i, a in enumerate(weighted)]
    right = [sum(t * value * logistic(y) for t, value, y in zip(twice, column, points)) for column in columns]
    half = solve(gram, right)
    return [-x for x in reversed(points[1:])] + points, list(reversed(half[1:])) + half


def described(points, weights, variance):
    """Returns the greatest error of the probability of acceptance, the variance of the correction with the normal noise, and the share of the weights'
    magnitude that is negative."""
    total = sum(weights)
    negative = -sum(w for w in weights if w < 0) / sum(map(abs, weights))
    law = [(x, w / total) for x, w in zip(points, weights)]
    sd = math.sqrt(variance)
    error = max(abs(sum(w * normal_cdf((0.05 * k - x) / sd) for x, w in law) - logistic_cdf(0.05 * k)) for k in range(-200, 201))
    return error, variance + sum(w * x * x for x, w in law), negative


def ridge_rows(variances):
    """Returns rows of the table: the variance, then error and variance of the fit as solved and with its negative weights set to 0."""
    found = []
    for variance in variances:
        points, weights = by_ridge(variance)
        solved = described(points, weights, variance)
        cut = described(points, [max(0.0, w) for w in weights], variance)
        found.append((variance, solved, cut))
    return found


if __name__ == "__main__":
    for row in ridge_rows([0.5, 1.0, 1.5, 2.0]):
        print(row)
