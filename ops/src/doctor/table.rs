//! Findings as a table for a terminal.

use super::finding::Finding;

/// Widths of the columns; longer text is wrapped between words.
const WIDTHS: [usize; 3] = [13, 58, 50];

/// Formats findings as `Check | Result | How to fix`, one row each.
#[must_use]
pub fn table(findings: &[Finding]) -> String {
    let mut text = row(["Check", "Result", "How to fix"]);
    text.push_str(&format!("{}\n", WIDTHS.map(|width| "-".repeat(width)).join("-+-")));
    for finding in findings {
        let result = format!("{}: {}", finding.result.as_str(), finding.found);
        text.push_str(&row([finding.code, &result, &finding.remedy]));
    }
    text
}

fn row(cells: [&str; 3]) -> String {
    let cells: Vec<Vec<String>> = cells.iter().zip(WIDTHS).map(|(cell, width)| wrap(cell, width)).collect();
    let lines = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for line in 0..lines {
        let parts: Vec<String> = cells
            .iter()
            .zip(WIDTHS)
            .map(|(cell, width)| format!("{:<width$}", cell.get(line).map_or("", String::as_str)))
            .collect();
        text.push_str(parts.join(" | ").trim_end());
        text.push('\n');
    }
    text
}

/// Wraps a text between words. A word longer than the width stays whole, so that paths can be copied.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { continue };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_cells_are_broken_between_words_and_paths_are_not() {
        let path = format!("/{}", "x".repeat(70));
        let text = table(&[
            Finding::ok("tcp", "reached"),
            Finding::fail(
                "data",
                format!("{path} does not exist"),
                "restore the file or correct `data.path` in the configuration",
            ),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("Check         | Result"), "{text}");
        assert!(lines[2].starts_with("tcp           | ok: reached"), "{text}");
        assert!(lines.len() > 4 && text.contains(&path), "{text}");
        assert!(lines.iter().all(|line| line.split(" | ").count() <= 3 && !line.ends_with(' ')), "{text}");
        assert!(text.contains("FAIL:"));
    }
}
