"""A demo with its pages, for the checks of pages in a browser: Debian's chromium, driven by playwright."""

import argparse
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from browser import complaints, contrast, cut_texts, finds_a_planted_fault, finds_a_planted_violation, hidden_columns, violations

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PARTIES = ("hospital-a", "hospital-b", "hospital-c")


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
        self.home, self.page, self.out, self.errors, self.inside = address, self.context.new_page(), out, [], False
        self.page.on("console", self.hear)
        self.page.goto(address)
        self.errors += [f"login: {what}" for what in violations(self.page)]
        self.page.get_by_label("Token").fill("wrong")
        self.page.get_by_role("button", name="Open").click()
        self.page.get_by_text("Wrong token.").wait_for()
        self.page.screenshot(path=out / "login-1280.png")
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
        """Takes the page's pictures at both widths in both colours, and records every defect of them."""
        for width, size in (("1280", WIDE), ("390", NARROW)):
            self.page.set_viewport_size(size)
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme)
                where = f"{name} at {width}, {scheme}"
                # Rules and contrast are checked at each width and in each colour once.
                if (width == "1280") == (scheme == "light"):
                    self.errors += [f"{where}: {what}" for what in violations(self.page)]
                    least, what = contrast(self.page)
                    if least < 4.5:
                        self.errors.append(f"{where}: contrast {least:.2f} of {what}")
                dark = "-dark" if scheme == "dark" else ""
                self.page.screenshot(path=self.out / f"{name}-{width}{dark}.png", full_page=True)
            self.errors += [f"{name} at {width}: {what}" for what in complaints(self.page) + cut_texts(self.page)[0]]
        self.errors += [f"{name}: {what}" for what in hidden_columns(self.page)]
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(WIDE)
        if printed:
            self.page.pdf(path=self.out / f"{name}.pdf", format="A4")

    def draws(self):
        # The bar runs toward the rule that will end the job, which may be a budget.
        tile = self.page.locator("#progress dt", has_text=re.compile("^Draws per chain$")).locator("xpath=../dd")
        # The run has no figures before its first round.
        return int(tile.inner_text().split(" of ")[0].replace(",", "")) if tile.count() else 0

    def spent(self):
        return float(self.page.locator("rect.bar-spent").first.get_attribute("width"))


class Demo:
    """A running demo: its folder, its program, and the options that name its coordinator."""

    def __init__(self, conclave, folder, browser, shots):
        self.conclave, self.folder, self.browser, self.shots = conclave, folder, browser, shots
        log = folder / "logs" / "coordinator.log"
        address = until("the dashboard", lambda: site(log, "dashboard"))
        until("the parties' pages", lambda: all(site(folder / "logs" / f"{party}.log", "page") for party in PARTIES))
        self.operator = Looker(browser, address, (folder / "coordinator" / "dashboard-token").read_text(), shots)
        token = (folder / PARTIES[0] / "identity" / "page-token").read_text()
        self.owner = Looker(browser, site(folder / "logs" / f"{PARTIES[0]}.log", "page"), token, shots)
        # The coordinator's configuration names its address once it listens.
        listen = re.search(r'listen = "([^"]+)"', (folder / "coordinator" / "coordinator.toml").read_text()).group(1)
        self.at = ["--coordinator", f"https://{listen}", "--identity", folder / "alice" / "identity"]

    def pid(self, party):
        return json.loads((self.folder / party / "ledger.sqlite.state").read_text())["pid"]

    def configure(self, party, old, new):
        """Changes a party's configuration, which it reads again."""
        config = self.folder / party / "party.toml"
        config.write_text(config.read_text().replace(old, new))
        os.kill(self.pid(party), signal.SIGHUP)

    def write_job(self, name, changes):
        """Writes the demo's job under another name, with changes by regular expressions; returns its path."""
        text = (self.folder / "job.toml").read_text().replace('"readmission"', json.dumps(name))
        for pattern, words in changes:
            text = re.sub(pattern, words, text, count=1)
        job = self.folder / f"{re.sub('[^a-z-]', '', name)}.toml"
        job.write_text(text)
        return job

    def run(self, *command):
        return subprocess.run([self.conclave, *command, *self.at], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def submit(self, name, changes, wait=True):
        """Submits a changed job, waits for its end, and returns its id."""
        done = self.run("submit", self.write_job(name, changes), *(["--wait"] if wait else []))
        found = re.search(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", done.stdout)
        if not found:
            raise SystemExit(f"{name} was not submitted: {done.stdout}")
        return found.group()

    def errors(self):
        """Returns the defects of all pages so far."""
        return self.operator.errors + self.owner.errors


def check(document, shots, options, test, is_ready=None):
    """Runs a demo with these options and a test of it, prints what it returns, and fails on any defect."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conclave", default="target/debug/conclave", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--shots", default=shots, type=Path, help="the folder of the screenshots")
    args = parser.parse_args()
    args.shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as play:
        folder, log = Path(scratch) / "demo", Path(scratch) / "demo.log"
        with open(log, "w") as out:
            command = [args.conclave, "demo", "--pages", "--out", folder, *options]
            demo = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        browser = play.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        try:
            if is_ready:
                until("the demo", lambda: is_ready in log.read_text(), 120)
            running = Demo(args.conclave, folder, browser, args.shots)
            words = test(running, log)
            errors = running.errors()
            if not finds_a_planted_violation(browser):
                errors.append("planted violations are not found")
            if not finds_a_planted_fault(browser):
                errors.append("a planted label that is cut is not found")
        finally:
            browser.close()
            demo.send_signal(signal.SIGINT)
            demo.wait(timeout=60)
        if errors:
            raise SystemExit("errors in the browser:\n" + "\n".join(errors))
        print(f"{words}; screenshots are in {args.shots}")
