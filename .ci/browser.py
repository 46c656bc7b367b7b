#!/usr/bin/env python3
"""Checks a page in Debian's chromium without a network: no console error, no request, no overflow, every picture named,
no violation of axe-core's rules.

    apt-get install -y --no-install-recommends chromium && pip install playwright axe-playwright-python
    .ci/browser.py REPORT.html --shots target/browser

The folder gets screenshots at 1280 and 390 pixels, light and dark, and the page as printed.
"""
import argparse
import functools
import importlib.resources
import pathlib
import sys

from playwright.sync_api import sync_playwright

WIDTHS = (1280, 390)
VIEWS = tuple((width, scheme) for width in WIDTHS for scheme in ("light", "dark"))
# The widths and colours at which axe-core's rules are checked: each of both once.
RULED = ((1280, "light"), (390, "dark"))
# Widths of desktops, at which no table hides a column.
DESKTOPS = (1400, 1920)
# Pixels by which a text may exceed its picture: the rounding of the layout.
SLACK = 1.0


def complaints(page):
    """Returns the page's defects as sentences."""
    return page.evaluate(
        """() => {
        const found = [];
        const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        if (wide > 0) found.push(`the page is ${wide} pixels too wide`);
        for (const svg of document.querySelectorAll('svg:not([aria-hidden])')) {
            const label = (svg.getAttribute('aria-labelledby') || '').split(' ').map(id => document.getElementById(id));
            if (svg.getAttribute('role') !== 'img' || !label.every(e => e && e.textContent)) found.push('a picture has no name');
        }
        const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
        if (new Set(ids).size !== ids.length) found.push('an id occurs twice');
        for (const a of document.querySelectorAll('a[href^="#"]'))
            if (!document.getElementById(a.getAttribute('href').slice(1))) found.push(`${a.getAttribute('href')} leads nowhere`);
        for (const box of document.querySelectorAll('.scroll'))
            if (box.scrollWidth > box.clientWidth + 1 && box.tabIndex !== 0) found.push('a scrolling table cannot be reached by keyboard');
        return found;
    }"""
    )


def cut_texts(page):
    """Returns the texts of pictures that are not inside their picture, as sentences, and the number of texts measured."""
    return page.evaluate(
        """slack => {
        const found = []; let measured = 0;
        for (const svg of document.querySelectorAll('svg')) {
            const frame = svg.getBoundingClientRect();
            if (!frame.width) continue;
            for (const text of svg.querySelectorAll('text')) {
                const box = text.getBoundingClientRect();
                if (!box.width) continue;
                measured += 1;
                const over = Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
                if (over > slack) found.push(`"${text.textContent.slice(0, 50)}" is cut by ${over.toFixed(1)} pixels in ${svg.getAttribute('aria-labelledby')}`);
            }
        }
        return [found, measured];
    }""",
        SLACK,
    )


def hidden_columns(page, height=900):
    """Returns the tables of which a desktop's screen hides columns, as sentences."""
    found = []
    for width in DESKTOPS:
        page.set_viewport_size({"width": width, "height": height})
        found += page.evaluate(
            """width => [...document.querySelectorAll('.scroll')].filter(box => box.clientWidth && box.scrollWidth > box.clientWidth + 1).map(box =>
                `at ${width} px a table hides ${box.scrollWidth - box.clientWidth} pixels: ${box.textContent.slice(0, 60)}`)""",
            width,
        )
    return found


def contrast(page):
    """Returns the least contrast of text against the background, by WCAG 2.2; the minimum is 4.5."""
    return page.evaluate(
        """() => {
        const channel = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
        const light = rgb => { const [r, g, b] = rgb.match(/[0-9.]+/g).map(Number); return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
        const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255,255,255)'; };
        let least = [99, ''];
        for (const e of document.querySelectorAll('p, th, td, dt, dd, li, a, summary, figcaption, caption, h1, h2, h3, pre, svg text, .ok, .bad')) {
            if (!e.textContent.trim() || !e.getClientRects().length) continue;
            const style = getComputedStyle(e), colour = e instanceof SVGElement ? style.fill : style.color;
            const [a, b] = [light(colour), light(ground(e))];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < least[0]) least = [ratio, e.tagName + ' ' + e.textContent.trim().slice(0, 30)];
        }
        return least;
    }"""
    )


@functools.cache
def axe_source():
    """Returns the script of axe-core, which the Python package ships."""
    return importlib.resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()


def violations(page):
    """Returns what axe-core finds wrong in the page, by all of its rules, as sentences."""
    # The driver evaluates the script, because the pages' policy admits no script tag. axe-core fetches nothing here.
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(axe_source() + "\n;0")
    return page.evaluate(
        """async () => (await axe.run(document, { preload: false, resultTypes: ['violations'] })).violations.flatMap(rule =>
            rule.nodes.map(node => `axe ${rule.id} (${rule.impact}): ${node.target.join(' ')}: ${node.failureSummary.split('\\n').slice(1).join(';').trim()}`))"""
    )


def finds_a_planted_violation(browser):
    """Returns whether axe-core finds a picture and a field without names and pale text, and nothing in a page without them."""
    page = browser.new_page()
    frame = '<!doctype html><html lang="en"><title>t</title><body><main><h1>t</h1><p>text</p>{}</main></body></html>'
    page.set_content(frame.format(""))
    clean = violations(page)
    page.set_content(frame.format('<img src="data:,"><input><p style="color: #aaa; background: #fff">pale</p>'))
    found = {what.split()[1] for what in violations(page)}
    page.close()
    return not clean and found == {"image-alt", "label", "color-contrast"}


def finds_a_planted_fault(browser):
    """Returns whether a label that leaves its picture and a table wider than its box are found, and others are not."""
    page = browser.new_page()
    picture = '<svg width="100" height="20" viewBox="0 0 100 20" aria-labelledby="planted"><text x="{}" y="15">label</text></svg>'
    page.set_content(picture.format(-10) + picture.format(20))
    found, measured = cut_texts(page)
    page.set_content('<div class="scroll" style="overflow-x: auto; width: 200px"><div style="width: 300px">wide</div></div><div class="scroll">fits</div>')
    hidden = hidden_columns(page)
    page.close()
    return len(found) == 1 and measured == 2 and len(hidden) == len(DESKTOPS)


def look(browser, path, out, views=VIEWS):
    """Returns the defects of a page in one file as sentences, and writes its screenshots to a folder."""
    address, problems = path.resolve().as_uri(), []
    for width, scheme in views:
        where = f"{path.name} at {width} px, {scheme}"
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        page = context.new_page()
        page.on("console", lambda m, where=where: problems.append(f"{where}: console {m.type}: {m.text}"))
        page.on("pageerror", lambda e, where=where: problems.append(f"{where}: {e}"))
        page.on("request", lambda r, where=where: r.url == address or problems.append(f"{where}: requests {r.url}"))
        page.goto(address)
        problems += [f"{where}: {what}" for what in complaints(page)]
        least, what = contrast(page)
        if least < 4.5:
            problems.append(f"{where}: contrast {least:.2f} of {what}")
        page.screenshot(path=out / f"{path.stem}-{width}-{scheme}.png", full_page=True)
        for details in page.query_selector_all("details > summary"):
            details.focus()
            page.keyboard.press("Enter")
        closed = page.eval_on_selector_all("details", "all => all.filter(d => !d.open).length")
        if closed:
            problems.append(f"{where}: {closed} details do not open by keyboard")
        problems += [f"{where}, details open: {what}" for what in complaints(page) + cut_texts(page)[0]]
        if (width, scheme) in RULED:
            problems += [f"{where}, details open: {what}" for what in violations(page)]
        if width > DESKTOPS[0] - 200:
            problems += [f"{path.name}, details open: {what}" for what in hidden_columns(page)]
        context.close()
    page = browser.new_page()
    page.goto(address)
    page.pdf(path=out / f"{path.stem}.pdf", format="A4")
    page.close()
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path, default=pathlib.Path("target/browser"))
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    args.shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        problems = look(browser, args.page, args.shots)
        if not finds_a_planted_violation(browser):
            problems.append("planted violations are not found")
        browser.close()
    print("\n".join(problems) or f"{args.page}: no defects")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
