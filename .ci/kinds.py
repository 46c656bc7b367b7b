#!/usr/bin/env python3
"""Checks the pages of every kind of job in a browser: Debian's chromium, driven by playwright.

  .ci/kinds.py [--conclave target/debug/conclave] [--shots target/kinds]

Starts a masked demo with its pages, and submits further jobs to it: auto, hmc, with a parameter of each party, one whose answer is
inadequate, one that the owners' policy refuses. Opens the list, every job's page, its page at an owner, its statement and its report.
Fails on what .ci/browser.py and .ci/dashboard.py fail on, and on a job that does not end as it should. Screenshots of each page at
1280 and 390 pixels, light and dark, and the page as printed are written to --shots.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from browser import RULED, finds_a_planted_violation, look
from dashboard import Looker, site, until

LOCAL = (r"(?s)\n# Answers are masked.*", "\n")
# A budget of which the owners' budgets have room for several.
LESS = (r"epsilon = .*", "epsilon = 30.0")
# The pattern of words that a job's page must show, and the changes of the demo's job file.
KINDS = {
    "secure": ("Fit to publish", ()),
    "auto": ("Fit to publish", (LOCAL, LESS)),
    "hmc": ("Fit to publish|Preliminary|Not usable", (LOCAL, LESS, (r'"auto"', '"hmc"'), (r"draws = 500", "draws = 100"))),
    "by-party": ("Fit to publish", (LOCAL, LESS, (r"(?m)^\[prior\]", '[parameters]\ndose = { by = "party" }\n\n[prior]'))),
    "inadequate": ("no adequate answer", (LOCAL, (r"epsilon = .*", "epsilon = 0.1"), (r"(?m)^seed", "force = true\nseed"))),
    "failed": ("max_epsilon_per_job", (LOCAL, (r"epsilon = .*", "epsilon = 150.0"))),
}


def submit(folder, conclave, at, name, changes):
    """Submits a job and waits for its end; returns its id."""
    text = (folder / "job.toml").read_text().replace('"readmission"', f'"{name}"')
    for pattern, words in changes:
        text = re.sub(pattern, words, text, count=1)
    job = folder / f"{name}.toml"
    job.write_text(text)
    done = subprocess.run([conclave, "submit", job, *at, "--wait"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", done.stdout)
    if not found:
        raise SystemExit(f"{name} was not submitted: {done.stdout}")
    return found.group()


def visit(looker, address, name, words):
    """Opens a page that must show words of this pattern, and takes its screenshots."""
    looker.page.goto(address)
    looker.page.locator("h1").wait_for()
    try:
        looker.page.get_by_text(re.compile(words, re.IGNORECASE)).first.wait_for(timeout=10_000)
    except Exception:  # noqa: BLE001 (the sentence names the page)
        looker.errors.append(f"{name}: does not show {words!r}")
    looker.shots(name, printed=True)


def pages(folder, conclave, operator, owner, shots):
    """Opens the pages of every kind of job."""
    listen = re.search(r'listen = "([^"]+)"', (folder / "coordinator" / "coordinator.toml").read_text()).group(1)
    at = ["--coordinator", f"https://{listen}", "--identity", folder / "alice" / "identity"]
    home = {looker: looker.page.url.split("?")[0].rstrip("/") for looker in (operator, owner)}
    for party in ("hospital-a", "hospital-b", "hospital-c"):
        config = folder / party / "party.toml"
        config.write_text(config.read_text().replace('approve = "automatic"', 'approve = "automatic"\nsite_parameters = "allow"'))
        os.kill(json.loads((folder / party / "ledger.sqlite.state").read_text())["pid"], signal.SIGHUP)
    time.sleep(1)
    jobs = {name: submit(folder, conclave, at, name, changes) for name, (_, changes) in KINDS.items() if name != "secure"}
    first = until("the demo's job", lambda: re.search(r"Job ([0-9a-f-]{36})", (folder / "demo.log").read_text()))
    jobs["secure"] = first.group(1)
    visit(operator, home[operator], "list", "by-party")
    visit(owner, home[owner], "owner", "inadequate")
    for name, job in jobs.items():
        visit(operator, f"{home[operator]}/jobs/{job}", f"job-{name}", KINDS[name][0])
        if name in ("secure", "inadequate"):
            visit(owner, f"{home[owner]}/jobs/{job}", f"owner-{name}", name if name != "secure" else "readmission")
            visit(owner, f"{home[owner]}/jobs/{job}/statement", f"statement-{name}", "Particulars")
        report = shots / f"report-{name}.html"
        subprocess.run([conclave, "report", job, "-o", report, *at], check=True, stdout=subprocess.DEVNULL)
        operator.errors += look(operator.context.browser, report, shots, RULED)
    return len(jobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conclave", default="target/debug/conclave", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--shots", default="target/kinds", type=Path, help="the folder of the screenshots")
    args = parser.parse_args()
    args.shots.mkdir(parents=True, exist_ok=True)
    for old in args.shots.glob("report-*.html"):
        old.unlink()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as play:
        folder = Path(scratch) / "demo"
        command = [args.conclave, "demo", "--algorithm", "auto", "--aggregation", "secure", "--pages", "--rows", "2000", "--draws", "500"]
        with open(Path(scratch) / "demo.log", "w") as log:
            demo = subprocess.Popen([*command, "--epsilon", "100", "--out", folder], stdout=log, stderr=subprocess.STDOUT)
        browser = play.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        try:
            logs = Path(scratch) / "demo.log"
            until("the demo's end", lambda: "the pages stay up" in logs.read_text(), 120)
            (folder / "demo.log").write_text(logs.read_text())
            owner = Looker(browser, site(folder / "logs" / "hospital-a.log", "page"),
                           (folder / "hospital-a" / "identity" / "page-token").read_text(), args.shots)
            operator = Looker(browser, site(folder / "logs" / "coordinator.log", "dashboard"),
                              (folder / "coordinator" / "dashboard-token").read_text(), args.shots)
            count = pages(folder, args.conclave, operator, owner, args.shots)
            errors = operator.errors + owner.errors
            if not finds_a_planted_violation(browser):
                errors.append("planted violations are not found")
        finally:
            browser.close()
            demo.send_signal(signal.SIGINT)
            demo.wait(timeout=60)
        if errors:
            raise SystemExit("errors in the browser:\n" + "\n".join(errors))
        print(f"{count} jobs; no defect; screenshots are in {args.shots}")


if __name__ == "__main__":
    sys.exit(main())
