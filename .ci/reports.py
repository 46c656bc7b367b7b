#!/usr/bin/env python3
"""Checks reports in a browser: what .ci/browser.py checks of any page, that every text of a picture is inside the picture
(at 1280 and 390 pixels, folded parts open), and the number of printed pages.

    .ci/reports.py FOLDER            every HTML file of the folder; writes screenshots beside them
    .ci/reports.py --binary          the test binary of the analyst's library, from cargo's messages on standard input
"""
import json
import pathlib
import re
import sys

# Maximum number of printed A4 pages, by the name of the report.
PAGES = {"few": 6, "many": 12, "by-party": 8, "survival": 8, "inadequate": 6, "not-usable": 6, "failed": 2}


def binary(lines):
    """Returns the path of the test binary of the analyst's library."""
    # All lines are read: cargo fails if its output is closed before its end.
    for line in list(lines):
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message.get("executable"):
            if message["manifest_path"].endswith("analyst/Cargo.toml") and "lib" in message["target"]["kind"]:
                return message["executable"]
    sys.exit("cargo built no test of the analyst's library")


def check(browser, path):
    """Returns the defects of a report, and the words on what was measured."""
    from browser import RULED, VIEWS, WIDTHS, cut_texts, look

    # A long report has the parts of a short one: its labels and pages are measured alone.
    is_long = "many" in path.stem
    problems, texts = [] if is_long else look(browser, path, path.parent, VIEWS if "few" in path.stem else RULED), 0
    for width in WIDTHS:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(path.resolve().as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        found, measured = cut_texts(page)
        texts += measured
        problems += [f"{path.name} at {width} px: {what}" for what in found]
        page.close()
    if is_long:
        page = browser.new_page()
        page.goto(path.resolve().as_uri())
        page.pdf(path=path.with_suffix(".pdf"), format="A4")
        page.close()
    pages = len(re.findall(rb"/Type\s*/Page\b", path.with_suffix(".pdf").read_bytes()))
    limit = next((most for name, most in PAGES.items() if name in path.stem), None)
    if limit is None or not 0 < pages <= limit:
        problems.append(f"{path.name}: {pages} printed pages, at most {limit} are allowed")
    return problems, f"{path.name}: {texts} texts inside their pictures, {pages} printed pages (at most {limit})"


def main():
    if sys.argv[1:] == ["--binary"]:
        print(binary(sys.stdin))
        return 0
    from browser import finds_a_planted_fault, finds_a_planted_violation
    from playwright.sync_api import sync_playwright

    reports, problems = sorted(pathlib.Path(sys.argv[1]).glob("*.html")), []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        if not finds_a_planted_fault(chromium):
            problems.append("a planted label that is cut is not found")
        if not finds_a_planted_violation(chromium):
            problems.append("planted violations of axe-core's rules are not found")
        for report in reports:
            found, words = check(chromium, report)
            problems += found
            print(words)
        chromium.close()
    if len(reports) < 9:
        problems.append(f"{len(reports)} reports instead of 9")
    print("\n".join(problems) or "no defects")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
