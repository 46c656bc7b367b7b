#!/usr/bin/env python3
"""Checks that the documents lead where they say.

    .ci/links.py

Every relative link in a tracked Markdown file leads to a file, and to a heading if it has an anchor. docs/SUMMARY.md names every
page below docs/ exactly once. Every page below docs/ that a source, script or unit names is there. Prints each fault with file and
line, and ends with 1 where there is one.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = "docs/SUMMARY.md"
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)")
# A code span, which ends within its paragraph.
SPAN = re.compile(r"(`+)(?:(?!\1|\n\n).)+?\1", re.DOTALL)
FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
# A page that another file names, by its path in the repository or where the package puts it.
NAMED = re.compile(r"(?:(?<![\w-])docs/|/usr/share/doc/conclave/)([\w./-]+\.(?:md|svg))")
NAMING = {".rs", ".py", ".sh", ".toml", ".yml", ".yaml", ".service", ".proto", ".html"}


def tracked():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in sorted(set(listed.stdout.splitlines())) if (ROOT / name).is_file()]


def prose(text):
    """Lines with their numbers; those within code blocks are left out."""
    within = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and within in (None, fence.group(1)):
            within = None if within else fence.group(1)
        elif within is None:
            yield number, line


def anchors(text):
    """The anchors of a page's headings, as GitHub and mdBook make them."""
    found, seen = set(), collections.Counter()
    for _, line in prose(text):
        heading = HEADING.match(line)
        if not heading:
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(2)).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def links(text):
    """The targets of links with the numbers of their lines; a link's text may run over a line's end."""
    lines = dict(prose(text))
    shown = "\n".join(lines.get(number, "") for number in range(1, len(text.splitlines()) + 1))
    shown = SPAN.sub(lambda span: re.sub(r"[^\n]", " ", span.group()), shown)
    for link in LINK.finditer(shown):
        yield shown.count("\n", 0, link.end()) + 1, link.group(1)


def faults():
    names = tracked()
    pages = [name for name in names if name.endswith(".md")]
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in pages}
    headings = {}
    for name in pages:
        for number, target in links(texts[name]):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z][a-z0-9+.-]*:", path) or not target:
                continue
            at = (ROOT / name).parent / path if path else ROOT / name
            if not at.exists():
                yield f"{name}:{number}: {target}: there is no such file"
                continue
            if not at.resolve().is_relative_to(ROOT):
                yield f"{name}:{number}: {target}: leads out of the repository"
                continue
            to = at.resolve().relative_to(ROOT).as_posix()
            if anchor and to in texts:
                known = headings.setdefault(to, anchors(texts[to]))
                if anchor not in known:
                    yield f"{name}:{number}: {target}: {to} has no such heading"
    yield from summary(texts)
    for name in names:
        if pathlib.Path(name).suffix in NAMING or name.startswith(".ci/"):
            for number, line in enumerate((ROOT / name).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                for page in NAMED.findall(line):
                    if not (ROOT / "docs" / page).is_file() and name != ".ci/links.py":
                        yield f"{name}:{number}: docs/{page}: there is no such page"


def summary(texts):
    """Pages that the contents lack, name twice, or name in vain."""
    if SUMMARY not in texts:
        yield f"{SUMMARY}:1: there is no such file"
        return
    named = collections.defaultdict(list)
    for number, target in links(texts[SUMMARY]):
        named[f"docs/{target}"].append(number)
    for page, numbers in named.items():
        for number in numbers[1:]:
            yield f"{SUMMARY}:{number}: {page} is named twice"
    for page in texts:
        if page.startswith("docs/") and page != SUMMARY and page not in named:
            yield f"{SUMMARY}:1: {page} is not named"


def main():
    found = list(faults())
    print("\n".join(found + [f"{len(found)} faults"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
