//! Documents: one sequence of blocks, rendered as text for a terminal, as Markdown, and as HTML.
//!
//! Programs receive the facts themselves as JSON; a document is for people, and its words may change. Text is plain: each renderer
//! escapes it, so that a name from outside is never markup and never controls a terminal.

use conclave_common::text::{lines, one_line, shown};
use maud::{Markup, html};

use crate::page::{Footer, Page, Style, Tone, document, notice, printed};
use crate::shares::Shares;
use crate::table::Table;
use crate::text::plain;

/// Blank for a signature in text.
const RULE: &str = "________________________________";

/// A part of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// The document's title.
    Title(String),
    /// A section's heading.
    Section(String),
    /// A heading within a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A warning.
    Warning(String),
    /// Points.
    Points(Vec<String>),
    /// Names with their values.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// Text shown verbatim.
    Verbatim(String),
    /// A bar of the parts of a whole.
    Shares(Shares),
    /// Lines for signatures, each below its heading.
    Signatures(Vec<String>),
    /// Blocks that a page folds under a summary; text and Markdown show them under a heading.
    Folded(String, Vec<Self>),
}

/// A name with its value.
pub type Fact = (String, String);

/// Creates a fact.
pub fn fact(name: impl Into<String>, words: impl Into<String>) -> Fact {
    (name.into(), words.into())
}

/// Renders text: names of facts are padded to one width, and a heading stands directly above its content.
#[must_use]
pub fn text(blocks: &[Block]) -> String {
    text_within(blocks, None)
}

/// Renders text as [`text`] does; sentences are wrapped at words to a terminal of `width` columns. Tables are not wrapped.
#[must_use]
pub fn text_within(blocks: &[Block], width: Option<usize>) -> String {
    let mut out = String::new();
    for block in blocks {
        out += &match block {
            Block::Title(text) | Block::Text(text) => wrapped("", text, width) + "\n\n",
            Block::Section(text) | Block::Heading(text) => wrapped("", &format!("{text}:"), width) + "\n",
            Block::Warning(text) => wrapped("", &format!("Warning: {text}"), width) + "\n\n",
            Block::Points(points) => points.iter().map(|point| wrapped("  - ", point, width) + "\n").collect::<String>() + "\n",
            Block::Facts(facts) => {
                let names = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
                let line = |(name, words): &Fact| wrapped(&format!("  {:<names$} ", one_line(name)), words, width) + "\n";
                facts.iter().map(line).collect::<String>() + "\n"
            }
            Block::Table(table) => format!("{}\n{}\n", wrapped("", &format!("{}:", table.caption()), width), table.text()),
            Block::Verbatim(text) => lines(text) + "\n\n",
            Block::Shares(shares) => shares.text() + "\n",
            Block::Signatures(names) => {
                names.iter().map(|name| format!("  {}: {RULE}\n", one_line(name))).collect::<String>() + "\n"
            }
            Block::Folded(summary, blocks) => format!("{}:\n{}\n\n", one_line(summary), text(blocks)),
        };
    }
    out.truncate(out.trim_end().len());
    out
}

/// Wraps a sentence at words to lines of at most `width` columns.
#[must_use]
pub fn wrap(text: &str, width: usize) -> String {
    wrapped("", text, Some(width))
}

/// Puts text on one line after `start`, or on lines of at most `width` columns that are indented as far as the text on the first.
fn wrapped(start: &str, text: &str, width: Option<usize>) -> String {
    let line = one_line(text);
    let Some(width) = width.filter(|width| *width > 20) else { return format!("{start}{line}") };
    let blank = " ".repeat(start.chars().count().min(width / 2));
    textwrap::fill(&line, textwrap::Options::new(width).initial_indent(start).subsequent_indent(&blank))
}

/// Renders Markdown.
#[must_use]
pub fn markdown(blocks: &[Block]) -> String {
    let part = |block: &Block| match block {
        Block::Title(text) => format!("# {}", escaped(text)),
        Block::Section(text) => format!("## {}", escaped(text)),
        Block::Heading(text) => format!("### {}", escaped(text)),
        Block::Text(text) => escaped(text),
        Block::Warning(text) => format!("**Warning:** {}", escaped(text)),
        Block::Points(points) => points.iter().map(|p| format!("- {}", escaped(p))).collect::<Vec<_>>().join("\n"),
        Block::Facts(facts) => {
            let rows = facts.iter().map(|(name, words)| format!("| {} | {} |", escaped(name), escaped(words)));
            ["| | |".to_owned(), "|---|---|".to_owned()].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
        }
        // Indented code can't be ended by its content.
        Block::Verbatim(text) => indented(text),
        Block::Table(table) => indented(&table.text()),
        Block::Shares(shares) => {
            format!("**{}:** {}. {}", escaped(&shares.title), escaped(&shares.words()), escaped(&shares.caption))
        }
        Block::Signatures(names) => {
            names.iter().map(|name| format!("{}: {}", escaped(name), escaped(RULE))).collect::<Vec<_>>().join("\n\n")
        }
        Block::Folded(summary, blocks) => format!("### {}\n\n{}", escaped(summary), markdown(blocks)),
    };
    blocks.iter().map(part).collect::<Vec<_>>().join("\n\n")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {}", one_line(line))).collect::<Vec<_>>().join("\n")
}

/// Escapes external text so that it has no meaning in Markdown or in HTML within it, and stays on its line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '!' | '&' => out.extend(['\\', c]),
            c => out.push(shown(c)),
        }
    }
    out
}

/// Renders the blocks as part of a page.
#[must_use]
pub fn html(blocks: &[Block]) -> Markup {
    let line = |text: &str| plain(text, usize::MAX);
    html! { @for block in blocks { @match block {
        Block::Title(text) => h1 { (line(text)) },
        Block::Section(text) => h2 { (line(text)) },
        Block::Heading(text) => h3 { (line(text)) },
        Block::Text(text) => p { (line(text)) },
        Block::Warning(text) => { (notice(Tone::Warning, "Warning", &html! { p { (line(text)) } }, false)) }
        Block::Points(points) => ul { @for point in points { li { (line(point)) } } },
        Block::Facts(facts) => dl.facts { @for (name, words) in facts { div { dt { (line(name)) } dd { (line(words)) } } } },
        Block::Table(table) => { (table.html()) }
        // Line by line: a name must not change the direction of the text after it.
        Block::Verbatim(text) => pre tabindex="0" { @for row in text.lines() { (line(row)) "\n" } },
        Block::Shares(shares) => { (shares.html()) }
        Block::Signatures(names) => div.signatures { @for name in names { div { p.rule {} p { (line(name)) } } } },
        Block::Folded(summary, blocks) => details { summary { (line(summary)) } (html(blocks)) },
    } } }
}

/// Renders one self-contained HTML file with the document's title.
#[must_use]
pub fn file(blocks: &[Block]) -> String {
    document(&Page { title: &title(blocks), style: Style::Embedded, script: None, body: &html(blocks) })
}

/// Renders one self-contained HTML file with a line at the foot of every printed page.
#[must_use]
pub fn printed_file(blocks: &[Block], footer: &Footer<'_>) -> String {
    printed(&Page { title: &title(blocks), style: Style::Embedded, script: None, body: &html(blocks) }, footer)
}

/// Renders a document at a server that has the stylesheets at these addresses, with a line at the foot of every printed page.
#[must_use]
pub fn printed_page(blocks: &[Block], style: &str, footer: &Footer<'_>) -> String {
    printed(&Page { title: &title(blocks), style: Style::At(style), script: None, body: &html(blocks) }, footer)
}

/// Returns the document's title on one line.
fn title(blocks: &[Block]) -> String {
    let title = blocks.iter().find_map(|block| if let Block::Title(text) = block { Some(plain(text, 200)) } else { None });
    title.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Cell;

    const HOSTILE: &str = "<b>\u{1b}[2J\n# x\u{202e}|";

    fn blocks() -> Vec<Block> {
        let table = Table::new(HOSTILE, &[HOSTILE], &[("name", &|name| Cell::name(name)), ("n", &|_| Cell::number(3))]);
        let facts = vec![fact("a", HOSTILE), fact("longer", "b")];
        let hostile = || HOSTILE.to_owned();
        vec![
            Block::Title(hostile()),
            Block::Section("Releases".to_owned()),
            Block::Facts(facts),
            Block::Heading(hostile()),
            Block::Points(vec![hostile()]),
            Block::Text(hostile()),
            Block::Warning(hostile()),
            Block::Table(table),
            Block::Verbatim("k = 1\n\u{1b}l = 2".to_owned()),
            Block::Shares(Shares { id: "b", title: hostile(), parts: Vec::new(), caption: hostile() }),
            Block::Signatures(vec![hostile()]),
            Block::Folded(hostile(), vec![Block::Text("folded".to_owned())]),
        ]
    }

    #[test]
    fn one_document_has_three_forms() {
        let (terminal, md, page) = (text(&blocks()), markdown(&blocks()), file(&blocks()));
        for part in [
            "\nReleases:\n  a      <b> [2J # x\u{fffd}|\n  longer b\n\n",
            "  - <b> [2J",
            "Warning: <b>",
            "name ",
            "k = 1\n l = 2",
            ": ________",
            "|:\nfolded",
        ] {
            assert!(terminal.contains(part), "{part:?} in {terminal:?}");
        }
        for part in ["# \\<b\\> \\[2J \\# x\u{fffd}\\|", "## Releases\n\n| | |\n|---|---|\n| a |", "\n    k = 1\n     l = 2"] {
            assert!(md.contains(part), "{part:?} in {md:?}");
        }
        for part in [
            "<div class=\"signatures\">",
            "<p>folded</p></details>",
            "<h2>Releases</h2>",
            "<dt>longer</dt><dd>b</dd>",
            "<h1>&lt;b&gt; [2J # x\u{fffd}|</h1>",
            "k = 1\n l = 2\n</pre>",
        ] {
            assert!(page.contains(part), "{part:?} in {page}");
        }
        for form in [&terminal, &md, &page] {
            assert!(!form.contains(['\u{1b}', '\u{202e}']) && !form.lines().any(|line| line.starts_with("# x")), "{form}");
        }
        assert!(!page.contains("<b>"), "{page}");
    }
}
