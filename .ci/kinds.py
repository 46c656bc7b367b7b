#!/usr/bin/env python3
"""Checks the pages of every kind of job in a browser: Debian's chromium, driven by playwright.

  .ci/kinds.py [--conclave target/debug/conclave] [--shots target/kinds]

Starts a masked demo with its pages, and submits further jobs to it: auto, penalty, hmc, with a parameter of each party, a survival
regression, one whose answer is inadequate, one that the owners' policy refuses. Opens the list, and every job's page, its page at an
owner and its statement (where an owner has the job), and its report. Fails on what .ci/browser.py and .ci/demo_site.py find, and on a job that does not end as it should.
Screenshots of each page at 1280 and 390 pixels, light and dark, and the page as printed are written to --shots.
"""

import re
import subprocess
import sys
import time

from browser import RULED, VIEWS, look
from demo_site import PARTIES, check, until

LOCAL = (r"(?s)\n# Answers are masked.*", "\n")
# A budget of which the owners' budgets have room for several.
LESS = (r"epsilon = .*", "epsilon = 25.0")
FORCED = (r"(?m)^seed", "force = true\nseed")
# The time of the survival regression is the demo's age, and its event the readmission.
SURVIVAL = (
    LOCAL,
    LESS,
    (r'(?s)\[model\].*?\n\n', '[model]\nkind = "piecewise_exponential"\noutcome = "age"\nevent = "readmitted"\ncuts = [50]\n'
     'predictors = ["treated", "dose"]\n\n'),
)
# The pattern of words that a job's page must show, and the changes of the demo's job file.
KINDS = {
    "secure": ("Fit to publish", ()),
    "auto": ("Fit to publish", (LOCAL, LESS)),
    "penalty": ("Fit to publish|Preliminary|Not usable|No adequate answer", (LOCAL, LESS, FORCED, (r'"auto"', '"penalty"'), (r"draws = 500", "draws = 300"))),
    "hmc": ("Fit to publish|Preliminary|Not usable", (LOCAL, LESS, (r'"auto"', '"hmc"'), (r"draws = 500", "draws = 100"))),
    "by-party": ("Fit to publish", (LOCAL, LESS, (r"(?m)^\[prior\]", '[parameters]\ndose = { by = "party" }\n\n[prior]'))),
    "survival": ("Fit to publish|Preliminary", SURVIVAL),
    "inadequate": ("no adequate answer", (LOCAL, (r"epsilon = .*", "epsilon = 0.1"), FORCED)),
    "failed": ("max_epsilon_per_job", (LOCAL, (r"epsilon = .*", "epsilon = 150.0"))),
}


def visit(looker, path, name, words):
    """Opens a page that must show words of this pattern, and takes its pictures."""
    looker.page.goto(f"{looker.home}{path}")
    looker.page.locator("h1").wait_for()
    try:
        looker.page.get_by_text(re.compile(words, re.IGNORECASE)).first.wait_for(timeout=10_000)
    except Exception:  # noqa: BLE001 (the sentence names the page)
        looker.errors.append(f"{name}: does not show {words!r}")
    looker.shots(name, printed=True)


def pages(demo, log):
    """Opens the pages of every kind of job."""
    for party in PARTIES:
        demo.configure(party, 'approve = "automatic"', 'approve = "automatic"\nsite_parameters = "allow"')
        demo.configure(party, 'models = ["logistic"]', 'models = ["logistic", "piecewise_exponential"]')
    time.sleep(1)
    jobs = {name: demo.submit(name, changes) for name, (_, changes) in KINDS.items() if name != "secure"}
    jobs["secure"] = until("the demo's job", lambda: re.search(r"Job ([0-9a-f-]{36})", log.read_text())).group(1)
    visit(demo.operator, "/", "list", "by-party")
    visit(demo.owner, "/", "owner", "inadequate")
    for name, job in jobs.items():
        visit(demo.operator, f"/jobs/{job}", f"job-{name}", KINDS[name][0])
        # A job that the owners' policy refuses is none of theirs: it has no page and no statement.
        if name != "failed":
            visit(demo.owner, f"/jobs/{job}", f"owner-{name}", "What it has cost")
            visit(demo.owner, f"/jobs/{job}/statement", f"statement-{name}", "Particulars")
        report = demo.shots / f"report-{name}.html"
        report.unlink(missing_ok=True)
        subprocess.run([demo.conclave, "report", job, "-o", report, *demo.at], check=True, stdout=subprocess.DEVNULL)
        demo.operator.errors += look(demo.browser, report, demo.shots, VIEWS if name == "auto" else RULED)
    return f"{len(jobs)} jobs; no defect"


OPTIONS = ("--algorithm", "auto", "--aggregation", "secure", "--rows", "2000", "--draws", "500", "--epsilon", "100")

if __name__ == "__main__":
    sys.exit(check(__doc__, "target/kinds", OPTIONS, pages, is_ready="the pages stay up"))
