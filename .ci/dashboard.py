#!/usr/bin/env python3
"""Checks the daemons' pages in a browser: Debian's chromium, driven by playwright.

  pip install playwright; apt-get install chromium
  cargo build -p conclave && .ci/dashboard.py [--conclave target/debug/conclave] [--shots target/browser]

Starts a demo with its pages and opens the dashboard. Waits for traces to grow and a budget bar to move. Stops a party (SIGSTOP), whose
name must appear and disappear again. Cancels a job with a hostile name and opens its report without a network. Checks a job that releases
once, its report, and a party's page. Decides on a job there, within two screens of a phone, and opens its statement. Fails on any error in the browser's console
and on any violation of axe-core's rules. Writes screenshots at 1280 and 390 pixels, light and
dark, to --shots.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

from browser import look
from demo_site import NARROW, PARTIES, check, until

# Pixels that are free below the decision on a phone's second screen, for a longer name or another font.
MARGIN = 60


def keyboard(looker):
    """Checks that the first tab stop skips the header, and that every stop is visible."""
    looker.page.reload()
    looker.page.locator("h1").wait_for()
    looker.page.keyboard.press("Tab")
    first = looker.page.evaluate("document.activeElement.className")
    assert first == "skip", f"the first stop is {first!r}"
    for _ in range(6):
        looker.page.keyboard.press("Tab")
        outline = looker.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", "a focused element is not marked"


def dashboard(demo):
    looker, page = demo.operator, demo.operator.page
    page.get_by_role("link", name="readmission").first.wait_for()
    looker.shots("jobs", printed=True)
    page.get_by_role("link", name="readmission").first.click()
    page.get_by_role("heading", name="Privacy budget of this job").wait_for()
    until("traces", lambda: page.locator("svg.chart").count() >= 2)
    until("the end of the warm-up", lambda: looker.draws() > 0, 120)
    trace = page.locator("svg.chart path.line").first
    before = (looker.draws(), looker.spent(), trace.get_attribute("d"))
    until("a trace to grow", lambda: trace.get_attribute("d") != before[2])
    until("draws to be made", lambda: looker.draws() > before[0])
    until("the budget bar to move", lambda: looker.spent() > before[1])
    print(f"traces grow; draws {before[0]} to {looker.draws()}; bar {before[1]} to {looker.spent()}")
    # An opened table stays open while the page updates.
    page.locator("#chains details summary").first.click()
    page.wait_for_timeout(2500)
    assert page.locator("#chains details").first.get_attribute("open") is not None, "an opened table closed itself"
    looker.shots("job", printed=True)
    keyboard(looker)

    party = PARTIES[1]
    pid = demo.pid(party)
    os.kill(pid, signal.SIGSTOP)
    try:
        page.get_by_text(re.compile(f"Paused: waiting for .*{party}")).first.wait_for(timeout=60_000)
        looker.shots("paused")
    finally:
        os.kill(pid, signal.SIGCONT)
    until("the pause to end", lambda: page.get_by_text("Paused: waiting for").count() == 0)
    draws = looker.draws()
    until("draws after the pause", lambda: looker.draws() > draws)
    print(f"{party} was named as paused, and the run resumed")

    # The demo ends with its own job, so another job is cancelled.
    demo.submit("another <b>job</b>", (), wait=False)
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="another <b>job</b>").first.click()
    until("draws of the other job", lambda: looker.draws() > 0, 120)
    page.get_by_role("link", name="Cancel this job…").click()
    looker.shots("cancel")
    page.get_by_role("button", name="Cancel this job").click()
    until("the end", lambda: page.locator("#state b", has_text="cancelled").count() == 1)
    looker.shots("cancelled")
    print("the job is cancelled")

    ended, report = page.url.rsplit("/", 1)[1], demo.shots / "report.html"
    report.unlink(missing_ok=True)
    subprocess.run([demo.conclave, "report", ended, "-o", report, *demo.at], check=True, stdout=subprocess.DEVNULL)
    looker.errors += look(demo.browser, report, demo.shots)
    print(f"the report of {ended} opens without a network")


def released(demo):
    """Checks a job that releases once: its intervals with and without noise and its stages, on the dashboard and in its report."""
    looker, page = demo.operator, demo.operator.page
    changes = [(rf"(?m)^{key} = .*$", f"{key} = {value}") for key, value in (("algorithm", '"noisy-statistics"'), ("draws", "1000"), ("epsilon", "2.0"))]
    changes += [(rf"(?m)^{key} = .*\n", "") for key in ("warmup", "proposal", "noise_sd")]
    job, report = demo.write_job("once", changes), demo.shots / "released.html"
    report.unlink(missing_ok=True)
    result = json.loads(subprocess.run([demo.conclave, "submit", job, *demo.at, "--wait", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="once").first.click()
    page.get_by_text("Estimates after each stage").first.wait_for()
    assert page.locator("#noise path.without-noise").count() > 1, "no interval without noise"
    looker.shots("once")
    subprocess.run([demo.conclave, "report", result["job"], "-o", report, *demo.at], check=True, stdout=subprocess.DEVNULL)
    looker.errors += look(demo.browser, report, demo.shots)
    print(f"{result['job']} released once, and shows the share of noise")


def consent(demo):
    """Has a job wait for hospital-a, decides on it at the party's page, and opens its statement."""
    owner, page = demo.owner, demo.owner.page
    demo.configure(PARTIES[0], 'approve = "automatic"', 'approve = "manual"')
    time.sleep(1)
    demo.submit("readmission", [(r"epsilon = [0-9.]+", "epsilon = 20.0")], wait=False)
    page.get_by_role("link", name="Review and decide").first.wait_for()
    page.get_by_role("link", name="Review and decide").first.click()
    page.get_by_role("heading", name="What it costs").wait_for()
    owner.shots("consent", printed=True)
    page.set_viewport_size(NARROW)
    button = page.locator("details.choice > summary").first
    box = button.bounding_box()
    end = box["y"] + box["height"]
    assert end <= 2 * NARROW["height"] - MARGIN, f"the decision ends at {end} px, within {MARGIN} px of the end of two screens or beyond it"
    button.click()
    owner.shots("consent-open")
    page.get_by_role("button", name="Approve this job").click()
    assert page.get_by_text("State:").count() == 0, "approved without the checklist"
    for check in page.locator("fieldset input[type=checkbox]").all():
        check.check()
    page.get_by_label("Last day (UTC)").fill("2999-12-31")
    page.get_by_role("button", name="Approve this job").click()
    page.get_by_text("valid through 2999-12-31").wait_for()
    page.get_by_role("link", name="Statement on this job").click()
    page.get_by_role("heading", name="Particulars").wait_for()
    owner.shots("statement", printed=True)
    print(f"the decision ends at {end:.0f} px of a phone's page")


def pages(demo, _log):
    """Opens every page while the demo runs."""
    dashboard(demo)
    released(demo)
    until("releases on the party's page", lambda: demo.owner.page.get_by_text("released numbers").count() > 0)
    demo.owner.shots("party", printed=True)
    consent(demo)
    return "no console error"


OPTIONS = ("--algorithm", "penalty", "--rows", "2000", "--draws", "1000000", "--epsilon", "400")

if __name__ == "__main__":
    sys.exit(check(__doc__, "target/browser", OPTIONS, pages))
