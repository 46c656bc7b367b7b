//! Renders a document as Markdown, and as one self-contained HTML file.

use conclave_common::text::{one_line, shown};

use super::block::Block;

/// Renders Markdown.
pub(crate) fn markdown(blocks: &[Block]) -> String {
    let parts: Vec<String> = blocks
        .iter()
        .map(|block| match block {
            Block::Title(text) => format!("# {}", escaped(text)),
            Block::Heading(text) => format!("## {text}"),
            Block::Text(text) => escaped(text),
            Block::Points(points) => points.iter().map(|p| format!("- {}", escaped(p))).collect::<Vec<_>>().join("\n"),
            Block::Facts(facts) => {
                let rows = facts.iter().map(|(name, words)| format!("| {} | {} |", escaped(name), escaped(words)));
                ["| | |".to_owned(), "|---|---|".to_owned()].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
            }
            // Indented code can't be ended by its content.
            Block::Verbatim(text) => text.lines().map(|l| format!("    {}", one_line(l))).collect::<Vec<_>>().join("\n"),
        })
        .collect();
    parts.join("\n\n")
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

const STYLE: &str = "
body { font: 11pt/1.45 Georgia, serif; color: #1a1a1a; max-width: 46rem; margin: 2.5rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 1.8rem; border-bottom: 1px solid #bbb; }
table { border-collapse: collapse; width: 100%; } td { padding: .3rem .6rem; vertical-align: top; border-bottom: 1px solid #ddd; }
td:first-child { white-space: nowrap; color: #555; } pre { font-size: 9pt; background: #f5f5f2; padding: .8rem; white-space: pre-wrap; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } table, pre { break-inside: avoid; } }
";

/// Renders one HTML file without scripts, links or images.
pub(crate) fn page(blocks: &[Block]) -> String {
    let title = blocks.iter().find_map(|b| if let Block::Title(text) = b { Some(text.as_str()) } else { None });
    let body: Vec<String> = blocks
        .iter()
        .map(|block| match block {
            Block::Title(text) => format!("<h1>{}</h1>", html(text)),
            Block::Heading(text) => format!("<h2>{}</h2>", html(text)),
            Block::Text(text) => format!("<p>{}</p>", html(text)),
            Block::Points(points) => {
                format!("<ul>{}</ul>", points.iter().map(|p| format!("<li>{}</li>", html(p))).collect::<String>())
            }
            Block::Facts(facts) => {
                let row = |(name, words): &(String, String)| format!("<tr><td>{}</td><td>{}</td></tr>", html(name), html(words));
                format!("<table>{}</table>", facts.iter().map(row).collect::<String>())
            }
            Block::Verbatim(text) => format!("<pre>{}</pre>", html(text)),
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n{}\n</body>\n</html>",
        html(title.unwrap_or_default()),
        body.join("\n")
    )
}

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            c => out.push(shown(c)),
        }
    }
    out
}
