#!/usr/bin/env python3
"""Writes predictions.json: expected outcomes, average effects and outcome quantiles by statsmodels, patsy, numpy and scipy.

    python3 -m venv v && v/bin/pip install statsmodels==0.15.0 && v/bin/python tests/vectors/predictions.py

Each case holds a job's [model] and [columns], parameters on the scale of the priors, rows as texts, and what the libraries make of
them. The scaling of columns is written out here, and products and indicators are patsy's: nothing is taken from Conclave's code.
"""
import json
import pathlib

import numpy as np
import patsy
import scipy
import statsmodels
import statsmodels.api as sm
from scipy import stats

DRAWS = 120
LEVELS = [0.9, 0.95, 0.5]
WARDS = ["medicine", "surgery, acute", "geriatrics"]
COLUMNS = {
    "age": "{ min = 20, max = 80 }",
    "treated": "{ binary = true }",
    "ward": '{ levels = ["medicine", "surgery, acute", "geriatrics"] }',
    "dose": "{ min = -1.5, max = 4.5 }",
    "time": "{ min = 0.5, max = 12 }",
    "shift": "{ min = -2, max = 3 }",
}
BOUNDS = {"age": (20, 80), "dose": (-1.5, 4.5)}
# Values outside the bounds are among them.
ROWS = {
    "age": [60.0, 20.0, 95.0, 37.25, 80.0, 12.0],
    "treated": [1, 0, 1, 0, 1, 0],
    "ward": [WARDS[0], WARDS[1], WARDS[2], WARDS[1], WARDS[0], WARDS[2]],
    "dose": [0.0, 4.5, 1.25, 9.0, -1.5, -3.0],
    "time": [0.5, 1.0, 3.5, 12.0, 40.0, 2.0],
    "shift": [0.0, -2.0, 1.5, 3.0, 0.25, -7.0],
}


def scaled(rows):
    data = {"treated": rows["treated"], "ward": rows["ward"]}
    for name, (low, high) in BOUNDS.items():
        data[name] = (np.clip(rows[name], low, high) - (low + high) / 2) / ((high - low) / 2)
    return data


def design(formula, rows):
    """patsy's columns in the order of the job's parameters: the intercept, then term by term."""
    matrix = patsy.dmatrix(formula, scaled(rows) | {"wards": WARDS})
    terms = [term.strip() for term in formula.split(" + ") if term.strip() != "0"]
    slices = matrix.design_info.term_name_slices
    order = (["Intercept"] if "Intercept" in slices else []) + terms
    # patsy sorts terms by their numeric factors.
    assert sorted(order) == sorted(slices), (order, slices)
    return np.hstack([np.asarray(matrix)[:, slices[term]] for term in order])


def summary(values):
    """Mean, sd, median and intervals of each row, from values[draw][row]."""
    rows = []
    for column in np.asarray(values).T:
        ends = {str(level): list(np.quantile(column, [(1 - level) / 2, (1 + level) / 2])) for level in LEVELS}
        rows.append({"mean": column.mean(), "sd": column.std(ddof=1), "median": np.median(column), "ends": ends})
    return rows


WARD = 'C(ward, levels=wards)'
# Name, [model] of the job, its columns, patsy's formula, further parameters of the family.
REGRESSIONS = [
    ("logistic", 'kind = "logistic"\noutcome = "y"\npredictors = ["age", "treated", "ward", "age:ward", "age:treated"]',
     "{ binary = true }", f"age + treated + {WARD} + age:{WARD} + age:treated", 0),
    ("logistic without intercept", 'kind = "logistic"\noutcome = "y"\npredictors = ["dose", "treated"]\nintercept = false\noffset = "shift"',
     "{ binary = true }", "0 + dose + treated", 0),
    ("linear", 'kind = "linear"\noutcome = "y"\npredictors = ["age", "dose", "age:dose", "ward"]',
     "{ min = 100, max = 220 }", f"age + dose + age:dose + {WARD}", 1),
    ("linear with offset", 'kind = "linear"\noutcome = "y"\npredictors = ["dose"]\noffset = "shift"\nsd = 2.5',
     "{ min = -10, max = 30 }", "dose", 0),
    ("poisson", 'kind = "poisson"\noutcome = "y"\npredictors = ["age", "treated", "treated:ward"]\nexposure = "time"',
     "{ min = 0, max = 40 }", None, 0),
    ("negative_binomial", 'kind = "negative_binomial"\noutcome = "y"\npredictors = ["dose", "ward"]\nexposure = "time"',
     "{ min = 0, max = 60 }", f"dose + {WARD}", 1),
    ("student_t", 'kind = "student_t"\noutcome = "y"\npredictors = ["age", "treated"]\ndf = 4',
     "{ min = -4, max = 12 }", "age + treated", 1),
]


def main():
    rng = np.random.default_rng(20261127)
    cases = []
    for name, model, outcome, formula, own in REGRESSIONS:
        x = design(formula, ROWS) if formula else treated_by_ward(ROWS)
        used = [column for column in COLUMNS if f'"{column}"' in model or f"{column}:" in model or f":{column}" in model]
        draws = rng.normal(0, 0.6, (DRAWS, x.shape[1]))
        values = [predict(name, theta, x) for theta in draws]
        own_draws = np.exp(rng.normal(-1.2, 0.3, (DRAWS, own)))
        cases.append({
            "name": name, "model": model, "columns": {"y": outcome} | {column: COLUMNS[column] for column in used},
            "parameters": np.hstack([draws, own_draws]).tolist(),
            "names": used, "rows": [[str(ROWS[column][i]) for column in used] for i in range(len(ROWS["age"]))],
            "expected": summary(values), "first_draw": list(values[0]),
            "outcome": outcome_quantiles(name, draws[0], own_draws[0], x),
        })
    result = {
        "made_by": f"statsmodels {statsmodels.__version__}, patsy {patsy.__version__}, numpy {np.__version__}, scipy {scipy.__version__}",
        "regressions": cases, "average": average(rng), "weibull": weibull(),
    }
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(result, default=float) + "\n")


def treated_by_ward(rows):
    """Columns of treated:ward without its main effect: the product with each indicator but the reference's."""
    treated, ward = np.array(rows["treated"]), np.array(rows["ward"])
    products = [treated * (ward == level) for level in WARDS[1:]]
    return np.column_stack([design("age + treated", rows), *products])


def predict(name, theta, x):
    """The expected outcome of every row by statsmodels."""
    ones = np.ones(len(x))
    if name == "logistic":
        return sm.GLM(ones, x, family=sm.families.Binomial()).predict(theta)
    if name == "logistic without intercept":
        return sm.GLM(ones, x, family=sm.families.Binomial()).predict(theta, offset=np.clip(ROWS["shift"], -2, 3))
    if name == "linear":
        return 160 + 60 * sm.OLS(ones, x).predict(theta)
    if name == "linear with offset":
        # The offset is in the outcome's units.
        return 10 + 20 * sm.OLS(ones, x).predict(theta) + np.clip(ROWS["shift"], -2, 3)
    if name == "poisson":
        return sm.GLM(ones, x, family=sm.families.Poisson()).predict(theta, exposure=np.clip(ROWS["time"], 0.5, 12))
    if name == "negative_binomial":
        model = sm.NegativeBinomial(ones, x, exposure=ones)
        return model.predict(np.append(theta, 0.5), exog=x, exposure=np.clip(ROWS["time"], 0.5, 12))
    return 4 + 8 * sm.OLS(ones, x).predict(theta)


def outcome_quantiles(name, theta, own, x):
    """Exact quantiles of a new record's outcome at the first draw alone, at 5 and 95 %."""
    mean = predict(name, theta, x)
    law = {
        "logistic": lambda: stats.bernoulli(mean), "logistic without intercept": lambda: stats.bernoulli(mean),
        "linear": lambda: stats.norm(mean, 60 * own), "linear with offset": lambda: stats.norm(mean, 2.5),
        "poisson": lambda: stats.poisson(mean),
        "negative_binomial": lambda: stats.nbinom(1 / own, 1 / (1 + own * mean)),
        "student_t": lambda: stats.t(4, mean, 8 * own),
    }[name]()
    return {"low": law.ppf(0.05).tolist(), "high": law.ppf(0.95).tolist(), "sd": law.std().tolist()}


def average(rng):
    """Average marginal effects of a fitted logistic regression by statsmodels' get_margeff, per unit of the data."""
    n = 60
    rows = {"age": rng.uniform(20, 80, n).round(2), "dose": rng.uniform(-1.5, 4.5, n).round(3), "treated": rng.integers(0, 2, n)}
    data = {name: (rows[name] - (low + high) / 2) / ((high - low) / 2) for name, (low, high) in BOUNDS.items()}
    x = np.column_stack([np.ones(n), data["age"], data["dose"], rows["treated"]])
    y = rng.random(n) < 1 / (1 + np.exp(-(x @ [-0.3, 0.8, -0.5, 0.9])))
    fit = sm.Logit(y.astype(float), x).fit(disp=0)
    effects = fit.get_margeff(at="overall", method="dydx", dummy=True).margeff
    return {
        "parameters": fit.params.tolist(), "names": ["age", "dose", "treated"],
        "rows": [[str(rows[name][i]) for name in ("age", "dose", "treated")] for i in range(n)],
        "effects": {"age": effects[0] / 30, "dose": effects[1] / 3, "treated": effects[2]},
    }


def weibull():
    """Survival, median and quantiles by scipy; the scale is in units of the declared maximum, 30."""
    cases = []
    for shape, scale in [(0.7, 0.2), (1.0, 0.5), (2.3, 0.8)]:
        law = stats.weibull_min(shape, scale=30 * scale)
        cases.append({"shape": shape, "scale": scale, "times": [1.0, 2.5, 20.0], "survival": law.sf([1.0, 2.5, 20.0]).tolist(),
                      "median": law.median(), "low": law.ppf(0.05), "high": law.ppf(0.95)})
    return cases


main()
