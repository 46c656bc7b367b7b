#!/usr/bin/env python3
"""Checks the language of code and documents: how doc comments open, and words that have a better term.

    .ci/language.py [PATH ...]       every finding below these paths (default: the whole tree), with file and line
    .ci/language.py --counts         one line per top-level folder

A doc comment opens with a verb or a noun: at most 3 % of them may open with one of OPENINGS. A word of REPLACED has a
better term, which is printed; quotations (text between double quotes in documents, code spans, code blocks and names on
the wire) do not count. Ends with 1 where a limit is exceeded.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPENINGS = re.compile(r"(Of|What|Whether|Where|Whose|How|That|As|It is)\b")
SHARE = 0.03
# A word or phrase, and the term that replaces it.
REPLACED = [
    (r"dear(er|est|ly)?|too_dear", "expensive, cost, price"),
    (r"g[ai]ve[sn]? away|giving away|given away", "published, revealed"),
    (r"work(s|ed|ing)? together", "collude"),
    (r"in league", "collude"),
    (r"mend(s|ed|ing)?", "repair, recover, fix"),
    (r"anew", "again; initialise, resume, restart"),
    (r"so (many|much)", "n; that number of; this much"),
    (r"as (many|much) as", "at most, at least, the number of"),
    (r"hopeless", "futility"),
    (r"played|plays", "simulated"),
    (r"(comes?|came|coming) to", "is, equals, cost, reaches"),
    (r"tells?|told|telling", "report, state, print, return, observe, notify"),
    (r"nothing of it", "inert"),
    (r"what is left", "remaining budget, the remainder"),
    (r"reckon\w*", "compute, count"),
    (r"whoever", "anyone who, a person who"),
    (r"nobody but", "only"),
    (r"what leaves", "release"),
    (r"what is asked", "query"),
    (r"(?<!research )questions?", "query"),
    (r"(go|goes|went|going) on", "continue, resume"),
    (r"releases? over (a |the )?samples?", "subsampled release"),
]
WORDS = [(re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE), better) for pattern, better in REPLACED]
KINDS = {".rs", ".md", ".toml", ".proto", ".py", ".sh", ".yml", ".yaml", ".service", ".ipynb", ".R", ".Rmd"}
# This list itself, text of others, and bytes that are recorded or checked: comments of the protocol's messages are compiled into
# generated code, whose bytes a test compares.
LEFT_OUT = re.compile(
    r"\.ci/language\.py|LICENSE|.*/generated/.*|proto/proto/.*|tests/corpus/.*|tests/vectors/.*|.*/proptest-regressions/.*|CHANGELOG\.md"
)
# Lines that must keep a replaced word: the key `policy.tell_budget`; `hopeless`, which stored results hold as `stopped_by`; the domain
# separator of a query's digest in a secure job, and keys of its recorded vectors; and lines marked as names on the wire, as the
# field `BudgetTold.told`.
KEPT = re.compile(
    r'tell_budget|alias.*hopeless|hopeless.*alias|"futility" \| "hopeless"|"conclave question 1"|\["questions?"\]|// wire name'
)


def files(paths):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in sorted(set(listed.stdout.splitlines())):
        path = ROOT / name
        if path.is_file() and not LEFT_OUT.fullmatch(name) and (path.suffix in KINDS or name.startswith(".ci/")):
            yield name, path


def unquoted(name, text):
    """The text with quotations blanked, line by line; of a notebook the cells' sources, since programs wrote the outputs."""
    if name.endswith(".ipynb"):
        return "".join("".join(cell["source"]) + "\n" for cell in json.loads(text)["cells"]).splitlines()
    if name.endswith(".md"):
        text = re.sub(r"```.*?```", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.DOTALL)
        text = re.sub(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|\]\([^)\n]*\)", lambda m: " " * len(m.group()), text)
    elif name.endswith(".rs"):
        # Code spans in comments name things that stand elsewhere.
        text = re.sub(r"(?m)^(\s*//.*)$", lambda m: re.sub(r"`[^`\n]*`|“[^”\n]*”", lambda q: " " * len(q.group()), m.group()), text)
    return text.splitlines()


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    counts_only = "--counts" in sys.argv
    docs, opened, words = collections.Counter(), collections.Counter(), collections.Counter()
    findings = []
    for name, path in files(arguments or ["."]):
        part = name.split("/")[0]
        text = path.read_text(errors="replace")
        if name.endswith(".rs"):
            within = False
            for number, line in enumerate(text.splitlines(), 1):
                found = re.match(r"\s*//[/!](?!/) ?(.*)", line)
                if found and not within:
                    docs[part] += 1
                    if OPENINGS.match(found.group(1)):
                        opened[part] += 1
                        findings.append(("opening", f"{name}:{number}: {found.group(1)[:90]}"))
                within = found is not None
        for number, line in enumerate(unquoted(name, text), 1):
            if KEPT.search(line):
                continue
            for pattern, better in WORDS:
                for found in pattern.finditer(line):
                    words[part] += 1
                    findings.append(("word", f"{name}:{number}: {found.group()!r}: {better}"))
    if counts_only:
        for part in sorted(docs.keys() | words.keys()):
            print(f"{part:14} openings {opened[part]:4} of {docs[part]:5}   replaced words {words[part]:5}")
    else:
        for kind, finding in findings:
            print(f"{kind} {finding}")
    share = sum(opened.values()) / max(sum(docs.values()), 1)
    print(f"openings: {sum(opened.values())} of {sum(docs.values())} doc comments ({100 * share:.1f} %, limit {100 * SHARE:.0f} %)")
    print(f"replaced words: {sum(words.values())} (limit 0)")
    return 0 if share <= SHARE and not words else 1


if __name__ == "__main__":
    sys.exit(main())
