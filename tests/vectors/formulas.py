#!/usr/bin/env python3
"""Writes formulas.json: designs of 60 formulas by formulaic, on 23 made-up records.

    pip install formulaic==1.2.2 && python3 formulas.py > formulas.json

`log`, `I` and the coding of levels are formulaic's own. `ns` is the natural cubic spline of formulaic (`cr`, from patsy) on the same
knots with the declared bounds as boundary, without its first cardinal function. `ls` is written out here.
"""
import json
import re
import random

import numpy
import pandas
from formulaic import model_matrix
from formulaic.materializers.types import FactorValues
from formulaic.transforms.cubic_spline import cubic_spline

BOUNDS = {"age": (18, 95), "dose": (0.5, 40), "bmi": (-3, 12)}
LEVELS = {"ward": ["a", "b", "c"], "site": ["x", "y"], "grade": ["low", "mid", "high"]}

FORMULAS = """
age
age + dose
0 + age
age - 1
-1 + age + dose
1
ward
ward + site
0 + ward
0 + ward + site
0 + site + ward
ward:site
0 + ward:site
ward + ward:site
site + ward:site
ward * site
0 + ward * site
ward * site - ward
ward * site - site
ward * site - ward - site
ward * site * grade
ward * site * grade - ward:site:grade
(ward + site + grade)^2
0 + (ward + site + grade)^2
ward + site + grade + ward:site:grade
ward:site:grade
0 + ward:site:grade
age * ward
age:ward
0 + age:ward
age + age:ward
ward + age:ward
0 + ward + age:ward
age:ward:site
age * ward * site
age:dose
age * dose
age * dose * bmi
age * sex
sex:ward
0 + sex
0 + sex:ward
(age + ward) * sex
(age + dose):ward
age + sex*dose
log(age)
log(dose + 1) + ward
I(age^2)
age + I(age^2) + I(age^3)
I((age - 50) / 10) * ward
I(bmi^2 / (dose + 1) - 2 * bmi)
log(age):log(dose)
sqrt(dose) + exp(bmi)
ns(age, knots = [40, 60])
ns(age, knots = [30, 45, 60, 80]) * sex
ns(age, knots = [50]):ward + site
0 + ns(bmi, knots = [-1, 0, 4])
ls(age, knots = [40, 60])
ls(age, knots = [40]):ward
ls(dose, knots = [1, 10]) * site
""".strip().splitlines()


def records():
    draw = random.Random(7)
    rows = []
    cells = [(w, s, g) for w in LEVELS["ward"] for s in LEVELS["site"] for g in LEVELS["grade"]]
    for at in range(23):
        ward, site, grade = cells[at % len(cells)]
        row = {name: round(draw.uniform(low, high), 2) for name, (low, high) in BOUNDS.items()}
        rows.append(row | {"sex": draw.randrange(2), "ward": ward, "site": site, "grade": grade, "y": 0.0})
    rows[0]["age"], rows[1]["age"], rows[2]["age"] = 18.0, 95.0, 40.0
    return pandas.DataFrame(rows)


def columns(matrix):
    return FactorValues(matrix, kind="numerical", spans_intercept=False)


def ns(x, knots):
    lower, upper = BOUNDS[x.name]
    basis = cubic_spline(numpy.asarray(x), knots=knots, lower_bound=lower, upper_bound=upper, _state={})
    return columns({at: basis[at + 1] for at in range(1, len(knots) + 2)})


def ls(x, knots):
    lower, upper = BOUNDS[x.name]
    ends = [lower, *knots, upper]
    parts = {1: numpy.minimum(x, knots[0])}
    for at in range(1, len(ends) - 1):
        parts[at + 1] = numpy.clip(x, ends[at], ends[at + 1]) - ends[at]
    return columns(parts)


def name(column):
    column = re.sub(r"\s", "", str(column)).replace("**", "^").replace("[T.", "[")
    column = re.sub(r",knots=\[[^]]*\]", "", column)
    return sorted(column.split(":"))


def main():
    data = records()
    for column, levels in LEVELS.items():
        data[column] = pandas.Categorical(data[column], categories=levels)
    designs = []
    for formula in FORMULAS:
        theirs = re.sub(r"I\(.*?\)(?=[ *:+]|$)", lambda found: found[0].replace("^", "**"), formula)
        context = {"ns": ns, "ls": ls, "log": numpy.log, "sqrt": numpy.sqrt, "exp": numpy.exp}
        matrix = pandas.DataFrame(model_matrix(theirs, data, context=context))
        designs.append({"formula": formula, "columns": [{"name": name(c), "values": [float(v) for v in matrix[c]]} for c in matrix]})
    text = data.assign(**{c: data[c].astype(str) for c in LEVELS}).to_dict(orient="records")
    print(json.dumps({"bounds": BOUNDS, "levels": LEVELS, "records": text, "designs": designs}))


main()
