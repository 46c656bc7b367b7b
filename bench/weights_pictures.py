"""The pictures of docs/explanation/weights.md.

    v/bin/python bench/weights_pictures.py --conclave target/release/conclave --out docs/explanation

Needs the packages of bench/real_sets.py. weights-frame.svg: simulated records within their bounds, and the balls of two frames.
weights-lengths.svg: the weight of a record by its length, and the laws of lengths. weights-answers.svg: intervals of `rehearse` on the sets
`fair` and `HI` at epsilon 1, beside both posteriors without privacy.
"""

import argparse
import pathlib
import tempfile

import numpy as np

from real_sets import PARTIES, named_fit, rehearse, without_privacy
from real_studies import studies

INK, PLAIN, WEIGHTED, FAINT = "#333333", "#b3541e", "#0b5fa5", "#dddddd"
TRACE = 1.5


class Picture:
    """An SVG of panels with linear axes."""

    def __init__(self, title, width, height):
        self.width, self.height = width, height
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11" role="img">'
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        ]

    def line(self, points, colour, width=2, dashed=False):
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(
            f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="{width}"{" stroke-dasharray=" + chr(34) + "5 4" + chr(34) if dashed else ""}/>'
        )

    def dot(self, x, y, colour, radius=1.5):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>')

    def text(self, x, y, words, colour=INK, anchor="middle"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>')

    def save(self, path):
        path.write_text("\n".join([*self.parts, "</svg>\n"]), encoding="utf-8")


def frame(path):
    """Records that fill a seventh of their bounds, correlated; the least ball that covers all bounds, and the one of a learnt frame."""
    rng = np.random.default_rng(1)
    cover = np.array([[0.0225, 0.0144], [0.0144, 0.0144]])
    records = np.clip(rng.multivariate_normal([0.1, -0.05], cover, 300), -1, 1)
    picture, side, left, top = Picture("Balls of a public and of a learnt frame", 420, 420), 230, 95, 70
    at = lambda x: (left + side * (x[0] + 1) / 2, top + side * (1 - x[1]) / 2)
    picture.line([at(corner) for corner in [(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]], INK, 1)
    turn = np.linspace(0, 2 * np.pi, 121)
    circle = np.array([np.cos(turn), np.sin(turn)])
    picture.line([at(x) for x in (np.sqrt(2) * circle).T], PLAIN)
    ball = np.array([[0.1], [-0.05]]) + np.linalg.cholesky(1.5 * 2 * cover) @ circle
    for record in records:
        picture.dot(*at(record), "#888888")
    picture.line([at(x) for x in ball.T], WEIGHTED)
    picture.text(left + side / 2, top - 8, "declared bounds of two predictors")
    picture.text(left + side / 2, top + side + 84, "the public ball: no record within the bounds lies outside", PLAIN)
    picture.text(left + side / 2, top + side + 102, "the ball of a learnt frame: ordinary records fill it", WEIGHTED)
    picture.save(path)


def lengths(path):
    """The weights of the two settings, and the laws of lengths of normal predictors and of Student's t with 3 degrees of freedom."""
    picture, (left, right, top, bottom) = Picture("Weights and lengths", 520, 300), (56, 500, 24, 236)
    most, d = 6.0, 5
    at = lambda q, share: (left + (right - left) * q / most, bottom - (bottom - top) * share)
    for share in (0, 0.5, 1):
        picture.line([at(0, share), at(most, share)], FAINT, 1)
        picture.text(left - 8, at(0, share)[1] + 4, f"{share:g}", anchor="end")
    for q in range(int(most) + 1):
        picture.text(at(q, 0)[0], bottom + 16, f"{q}")
    rng = np.random.default_rng(2)
    normal = (rng.standard_normal((400_000, d)) ** 2).mean(1)
    tail = (rng.standard_t(3, (400_000, d)) ** 2 / 3).mean(1)
    for sample, dashed in ((normal, False), (tail, True)):
        count, edges = np.histogram(sample, np.linspace(0, most, 61))
        density = count / len(sample) * 6
        picture.line([at(q, share) for q, share in zip((edges[1:] + edges[:-1]) / 2, density)], "#888888", 1.5, dashed)
    for radius, colour in ((3.0, WEIGHTED), (1.5, PLAIN)):
        q = np.linspace(0.02, most, 200)
        weight = np.minimum(1, np.minimum(np.sqrt(radius / q), TRACE * radius / q))
        picture.line([at(*point) for point in zip(q, weight)], colour)
    picture.text((left + right) / 2, bottom + 34, "squared length of a record over the mean one")
    picture.text(right, at(0, 0.92)[1], "weight, wide setting", WEIGHTED, "end")
    picture.text(right, at(0, 0.54)[1], "weight, narrow setting", PLAIN, "end")
    picture.text((left + right) / 2, bottom + 54, "grey: law of lengths of normal predictors; dashed: of Student&#8217;s t, 3 degrees of freedom", "#666666")
    picture.save(path)


def intervals(program, study, seeds):
    """Returns a set's posterior without privacy, the weighted fit of a run, and the intervals of runs by weights, of the last coefficient."""
    (mean, covariance), _ = without_privacy(study)
    own, runs, more = -1, {}, study.more
    for weights in ("never", "always"):
        study.more = more + f'weights = "{weights}"\n'
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for party, part in zip("abc", np.array_split(np.arange(len(study.frame)), PARTIES)):
                study.frame.iloc[part].to_csv(folder / f"{party}.csv", index=False)
            (folder / "1.0.toml").write_text(study.job(1.0))
            runs[weights] = [rehearse(program, folder, study, "1.0", seed) for seed in range(1, seeds + 1)]
    fits = [named_fit(study, run["weighted"])[own] for run in runs["always"]]
    of = lambda run: (run["mean"][own], run["sd"][own]) if run.get("adequate") else None
    return (mean[own], np.sqrt(covariance[own, own])), np.mean(fits), {key: [of(run) for run in found] for key, found in runs.items()}, study.predictors[own]


def answers(path, program, seeds=8):
    """The 90 % intervals of runs, in sds of the posterior without privacy about its mean."""
    picture, row, panel = Picture("Answers of plain and weighted fits", 760, 400), 16, 380
    sets = [study for study in studies(argparse.Namespace(adult=None, abalone=None)) if study.name in ("fair", "HI")]
    for place, study in enumerate(sets):
        (mean, sd), fit, runs, name = intervals(program, study, seeds)
        left, right, top = place * panel + 30, (place + 1) * panel - 20, 46
        across = lambda value: left + (right - left) * (np.clip((value - mean) / sd, -9, 9) + 9) / 18
        bottom = top + row * (2 * seeds + 2)
        for sds in (-8, -4, 0, 4, 8):
            picture.line([(across(mean + sds * sd), top), (across(mean + sds * sd), bottom)], INK if sds == 0 else FAINT, 1)
            picture.text(across(mean + sds * sd), bottom + 16, f"{sds}")
        picture.line([(across(fit), top), (across(fit), bottom)], WEIGHTED, 1, True)
        y = top + row
        for key, colour in (("never", PLAIN), ("always", WEIGHTED)):
            for run in runs[key]:
                if run is None:
                    picture.text(across(mean), y + 4, "no answer", colour)
                else:
                    centre, width = run[0], 1.645 * run[1]
                    picture.line([(across(centre - width), y), (across(centre + width), y)], colour)
                    picture.dot(across(centre), y, colour, 3)
                y += row
            y += row / 2
        picture.text((left + right) / 2, 24, f"{study.name}: coefficient of {name}")
        picture.text((left + right) / 2, bottom + 34, "posterior sds from the plain posterior without privacy")
    picture.text(380, 386, "90 % intervals of eight runs at epsilon 1: brown plain, blue weighted; dashed: the weighted fit without privacy", "#666666")
    picture.save(path)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--conclave", required=True)
    words.add_argument("--out", required=True, type=pathlib.Path)
    given = words.parse_args()
    frame(given.out / "weights-frame.svg")
    lengths(given.out / "weights-lengths.svg")
    answers(given.out / "weights-answers.svg", given.conclave)


if __name__ == "__main__":
    main()
