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

from browser import complaints, contrast, finds_a_planted_violation, look, violations

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def until(what, test, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = test()
        if found:
            return found
        time.sleep(0.2)
    raise SystemExit(f"timeout waiting for {what}")


def site(log, key):
    """Returns the address of a daemon's pages from its log."""
    text = log.read_text() if log.exists() else ""
    found = re.search(rf"{key} at (http://[^/\s]+)/", text)
    return found and found.group(1)


class Looker:
    """A logged-in browser, with the errors of its console since."""

    def __init__(self, browser, address, token, out):
        self.context = browser.new_context(viewport=WIDE, color_scheme="light")
        self.page, self.out, self.errors, self.inside = self.context.new_page(), out, [], False
        self.page.on("console", self.hear)
        self.page.goto(address)
        self.errors += [f"login: {what}" for what in violations(self.page)]
        self.page.get_by_label("Token").fill("wrong")
        self.page.get_by_role("button", name="Open").click()
        self.page.get_by_text("Wrong token.").wait_for()
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: r.url.startswith(address) or self.errors.append(f"request to another server: {r.url}"))
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Open").click()
        self.page.locator("h1").wait_for()
        self.page.wait_for_timeout(2000)
        self.inside = True

    def hear(self, message):
        # Chromium reports every 401 answer before the right token, sometimes after the page has changed.
        refused = not self.inside and "401 (Unauthorized)" in message.text
        if not refused and message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text}")

    def shots(self, name, printed=False):
        for width, size in (("1280", WIDE), ("390", NARROW)):
            self.page.set_viewport_size(size)
            self.errors += [f"{name} at {width}: {what}" for what in complaints(self.page)]
            if size == WIDE:
                self.errors += [f"{name} at {width}: {what}" for what in violations(self.page)]
            self.page.screenshot(path=self.out / f"{name}-{width}.png", full_page=True)
        self.page.emulate_media(color_scheme="dark")
        self.errors += [f"{name} at {width}, dark: {what}" for what in violations(self.page)]
        self.page.screenshot(path=self.out / f"{name}-390-dark.png", full_page=True)
        for scheme in ("dark", "light"):
            self.page.emulate_media(color_scheme=scheme)
            least, what = contrast(self.page)
            if least < 4.5:
                self.errors.append(f"{name}, {scheme}: contrast {least:.2f} of {what}")
        self.page.set_viewport_size(WIDE)
        if printed:
            self.page.pdf(path=self.out / f"{name}.pdf", format="A4")

    def draws(self):
        # The bar runs toward the rule that will end the job, which may be a budget.
        tile = self.page.locator("#progress dt", has_text=re.compile("^Draws per chain$")).locator("xpath=../dd")
        return int(tile.inner_text().split(" of ")[0].replace(",", ""))

    def spent(self):
        return float(self.page.locator("rect.bar-spent").first.get_attribute("width"))


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


def dashboard(looker, folder, conclave):
    page = looker.page
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

    party = sorted(p.name for p in folder.iterdir() if (p / "party.toml").exists())[1]
    pid = json.loads((folder / party / "ledger.sqlite.state").read_text())["pid"]
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
    listen = re.search(r'listen = "([^"]+)"', (folder / "coordinator" / "coordinator.toml").read_text()).group(1)
    job = folder / "another.toml"
    job.write_text((folder / "job.toml").read_text().replace('name = "readmission"', 'name = "another <b>job</b>"'))
    at = ["--coordinator", f"https://{listen}", "--identity", folder / "alice" / "identity"]
    subprocess.run([conclave, "submit", job, *at], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="another <b>job</b>").first.click()
    until("draws of the other job", lambda: looker.draws() > 0, 120)
    page.get_by_role("link", name="Cancel this job…").click()
    looker.shots("cancel")
    page.get_by_role("button", name="Cancel this job").click()
    until("the end", lambda: page.locator("#state b", has_text="cancelled").count() == 1)
    looker.shots("cancelled")
    print("the job is cancelled")

    ended, report = page.url.rsplit("/", 1)[1], folder / "report.html"
    subprocess.run([conclave, "report", ended, "-o", report, *at], check=True, stdout=subprocess.DEVNULL)
    looker.errors += look(looker.context.browser, report, looker.out)
    print(f"the report of {ended} opens without a network")
    released(looker, folder, conclave, at)


def released(looker, folder, conclave, at):
    """Checks a job that releases once: its intervals with and without noise and its stages, on the dashboard and in its report."""
    page = looker.page
    text = (folder / "job.toml").read_text()
    for key, value in (("name", '"once"'), ("algorithm", '"noisy-statistics"'), ("draws", "1000"), ("epsilon", "2.0")):
        text = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
    job, report = folder / "once.toml", folder / "released.html"
    job.write_text(re.sub(r"(?m)^(warmup|proposal|noise_sd) = .*\n", "", text))
    result = json.loads(subprocess.run([conclave, "submit", job, *at, "--wait", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="once").first.click()
    page.get_by_text("Estimates after each stage").first.wait_for()
    assert page.locator("#noise path.without-noise").count() > 1, "no interval without noise"
    looker.shots("once")
    subprocess.run([conclave, "report", result["job"], "-o", report, *at], check=True, stdout=subprocess.DEVNULL)
    looker.errors += look(looker.context.browser, report, looker.out)
    print(f"{result['job']} released once, and shows the share of noise")


def consent(owner, folder, conclave):
    """Has a job wait for hospital-a, decides on it at the party's page, and opens its statement."""
    page, config = owner.page, folder / "hospital-a" / "party.toml"
    config.write_text(config.read_text().replace('approve = "automatic"', 'approve = "manual"'))
    os.kill(json.loads((folder / "hospital-a" / "ledger.sqlite.state").read_text())["pid"], signal.SIGHUP)
    time.sleep(1)
    listen = re.search(r'listen = "([^"]+)"', (folder / "coordinator" / "coordinator.toml").read_text()).group(1)
    job = folder / "waiting.toml"
    job.write_text(re.sub(r"epsilon = [0-9.]+", "epsilon = 20.0", (folder / "job.toml").read_text()))
    at = ["--coordinator", f"https://{listen}", "--identity", folder / "alice" / "identity"]
    subprocess.run([conclave, "submit", job, *at], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page.get_by_role("link", name="Review and decide").first.wait_for()
    page.get_by_role("link", name="Review and decide").first.click()
    page.get_by_role("heading", name="What it costs").wait_for()
    owner.shots("consent", printed=True)
    page.set_viewport_size(NARROW)
    button = page.locator("details.choice > summary").first
    box = button.bounding_box()
    end = box["y"] + box["height"]
    assert end <= 2 * NARROW["height"], f"the decision ends at {end} px, beyond two screens"
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conclave", default="target/debug/conclave", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--shots", default="target/browser", type=Path, help="the folder of the screenshots")
    args = parser.parse_args()
    args.shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as play:
        folder = Path(scratch) / "demo"
        demo = subprocess.Popen(
            [args.conclave, "demo", "--algorithm", "penalty", "--pages", "--rows", "2000", "--draws", "1000000", "--epsilon", "400", "--out", folder],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        browser = play.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        try:
            address = until("the dashboard", lambda: site(folder / "logs" / "coordinator.log", "dashboard"))
            until("the job", lambda: all(site(folder / "logs" / f"{p}.log", "page") for p in ("hospital-a", "hospital-b", "hospital-c")))
            owner = Looker(browser, site(folder / "logs" / "hospital-a.log", "page"),
                           (folder / "hospital-a" / "identity" / "page-token").read_text(), args.shots)
            operator = Looker(browser, address, (folder / "coordinator" / "dashboard-token").read_text(), args.shots)
            dashboard(operator, folder, args.conclave)
            until("releases on the party's page", lambda: owner.page.get_by_text("released numbers").count() > 0)
            owner.shots("party", printed=True)
            consent(owner, folder, args.conclave)
            errors = operator.errors + owner.errors
            if not finds_a_planted_violation(browser):
                errors.append("planted violations are not found")
        finally:
            browser.close()
            demo.send_signal(signal.SIGINT)
            demo.wait(timeout=60)
        if errors:
            raise SystemExit("errors in the browser:\n" + "\n".join(errors))
        print(f"no console error; screenshots are in {args.shots}")


if __name__ == "__main__":
    sys.exit(main())
