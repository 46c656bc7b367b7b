"""States the settings that bench/race.py tries of every rival."""

import itertools

from rivals import ada_ssp, gradient_descent, hessian_mixing, newton, newton_direction


def grid(**values):
    return [dict(zip(values, chosen)) for chosen in itertools.product(*values.values())]


def names(kind):
    """Returns the names of the rivals that fit a model."""
    return {"dp_gd", "newton", "newton_direction"} | ({"ada_ssp", "ihm"} if kind == "linear" else set())


def grids(problem):
    """Returns the settings of every rival that fits the model. The same position is the same setting in all problems of a model.

    Rows are at least 1 long, by the intercept, so 1 / root of d is the least limit that matters. Clips and caps of counts
    are relative to the largest and the mean outcome, which are given to the rivals."""
    linear, counts = problem.kind == "linear", problem.kind in ("poisson", "negative_binomial")
    least = 1 / problem.radius
    if linear:
        clips = [0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.7]
    elif counts:
        clips = [c * float(problem.y.max()) for c in (0.03, 0.06, 0.1, 0.15, 0.25, 0.4, 1)]
    else:
        clips = [0.1, 0.2, 0.35, 0.5, 0.6, 0.7, 0.85]
    mean = float((problem.y * problem.counts).sum() / problem.n)
    extra = {"cap": [mean, 2 * mean, 5 * mean]} if counts else {} if linear else {"upper": [False, True]}
    fewer = [0.05, 0.1, 0.2, 0.3, 0.5] if linear else clips[1:6]
    found = {
        "dp_gd": (
            gradient_descent,
            grid(steps=[10, 40, 120, 400], rate=[0.15, 0.4, 0.8, 1.3, 1.8], clip=clips, average=[False, True]),
        ),
        "newton": (
            newton,
            grid(
                steps=[1, 2, 3, 5, 8, 12],
                share=[0.05, 0.15, 0.35],
                clip=fewer,
                limit=[least, 0.75, 1],
                floor=[0.3, 1, 3, 8],
                **extra
            ),
        ),
        "newton_direction": (
            newton_direction,
            grid(
                steps=[2, 4, 8, 12],
                share=[0.1, 0.3, 0.6],
                clip=fewer,
                limit=[least, 0.75],
                shift=[1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3],
                **extra
            ),
        ),
    }
    if linear:
        shares = [(1 / 3, 1 / 3), (0.02, 0.49), (0, 0.15), (0, 0.3), (0, 0.5), (0, 0.7), (0, 0.85)]
        rest = grid(limit=[least, 0.6, 0.7, 0.85, 1], outcome=[0.1, 0.25, 0.5, 1], ridge=[0, 0.01, 0.03, 0.1, 0.3, 1])
        found["ada_ssp"] = (ada_ssp, [{"eigenvalue": e, "gram": g, **settings} for e, g in shares for settings in rest])
        found["ihm"] = (
            hessian_mixing,
            grid(
                steps=[1, 2, 3, 5, 8, 12],
                rows=[0, 1, 2, 6],
                sketch=[0.05, 0.1, 0.2, 0.4, 0.6],
                eigenvalue=[0, 0.05],
                limit=[least, 0.6, 0.8, 1],
                clip=[0.05, 0.1, 0.2, 0.4, 1],
            ),
        )
    return found
