//! Whole pages with their stylesheet and content security policy.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conclave_common::text::lines;
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

/// The stylesheet of every page, without external references.
pub const STYLE: &str = include_str!("style.css");

/// The location of a page's stylesheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style<'a> {
    /// Embedded in the page, which is then a self-contained file. Its policy admits this stylesheet by its hash, and nothing
    /// else.
    Embedded,
    /// At this address of the page's own server, whose headers set the policy.
    At(&'a str),
}

/// The content of a page.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The title as plain text; names from outside must have passed [`crate::text::plain_name`].
    pub title: &'a str,
    /// The stylesheet.
    pub style: Style<'a>,
    /// The address of a script on the page's own server.
    pub script: Option<&'a str>,
    /// The content of the body.
    pub body: &'a Markup,
}

/// Renders the page as HTML. Whatever its parts show, the page has no character that acts on the display.
#[must_use]
pub fn document(page: &Page<'_>) -> String {
    rendered(page, None)
}

/// The line at the foot of every printed page, beside the page's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer<'a> {
    /// The text; characters other than letters, digits, blanks and `.,:-` are left out.
    pub text: &'a str,
    /// The address of the stylesheet [`Footer::style`] on the page's own server; used for [`Style::At`].
    pub at: &'a str,
}

impl Footer<'_> {
    /// Returns the stylesheet of the margin boxes: the text, and the number of the page of all.
    #[must_use]
    pub fn style(&self) -> String {
        let safe = |c: &char| c.is_ascii_alphanumeric() || " .,:-".contains(*c);
        let text: String = self.text.chars().filter(safe).take(160).collect();
        let font = "font: 8pt system-ui, Arial, sans-serif; color: #444;";
        format!(
            "@page {{ margin: 16mm 16mm 18mm; @bottom-left {{ content: \"{text}\"; {font} }} \
             @bottom-right {{ content: counter(page) \" / \" counter(pages); {font} }} }}\n"
        )
    }
}

/// Renders the page as HTML with a line at the foot of every printed page.
#[must_use]
pub fn printed(page: &Page<'_>, footer: &Footer<'_>) -> String {
    rendered(page, Some(footer))
}

fn rendered(page: &Page<'_>, footer: Option<&Footer<'_>>) -> String {
    let style = footer.map_or_else(|| STYLE.to_owned(), |footer| format!("{STYLE}{}", footer.style()));
    let markup = html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                @if page.style == Style::Embedded {
                    meta http-equiv="Content-Security-Policy" content=(file_policy(&style));
                }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Our servers set the policy in a header, and must let the page send its origin with its own forms.
                @if page.style == Style::Embedded { meta name="referrer" content="no-referrer"; }
                title { (page.title) }
                @match page.style {
                    Style::Embedded => style { (PreEscaped(style)) },
                    Style::At(address) => {
                        link rel="stylesheet" href=(address);
                        link rel="icon" type="image/svg+xml" href="/favicon.svg";
                        @if let Some(footer) = footer { link rel="stylesheet" href=(footer.at); }
                    }
                }
                @if let Some(address) = page.script { script src=(address) defer {} }
            }
            body {
                a.skip href="#main" { "To the content" }
                main id="main" { (page.body) }
            }
        }
    };
    lines(&markup.into_string())
}

/// Returns the policy of a self-contained file: its own stylesheet by hash, and nothing else.
fn file_policy(style: &str) -> String {
    let hash = STANDARD.encode(Sha256::digest(style.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

/// The tone of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Success.
    Good,
    /// Information.
    Note,
    /// A result that meets its limits in part.
    Partial,
    /// A warning, such as a paused party.
    Warning,
}

/// Builds a highlighted box with a heading; with `live`, screen readers announce its changes.
#[must_use]
pub fn notice(tone: Tone, heading: &str, body: &Markup, live: bool) -> Markup {
    // A sign beside the colour, for readers who cannot see it.
    let (class, mark) = match tone {
        Tone::Good => ("notice good", "✓"),
        Tone::Note => ("notice", "i"),
        Tone::Partial => ("notice", "◐"),
        Tone::Warning => ("notice beware", "!"),
    };
    html! {
        div class=(class) role=[live.then_some("status")] {
            p.heading { span.mark aria-hidden="true" { (mark) } " " (heading) }
            (body)
        }
    }
}

#[cfg(test)]
mod tests {
    use conclave_common::text::is_plain;

    use super::*;

    #[test]
    fn a_file_has_no_external_reference() {
        let body = html! { p { "</style><script>" } };
        let text = document(&Page { title: "<x>\"", style: Style::Embedded, script: None, body: &body });
        assert!(text.contains("<title>&lt;x&gt;&quot;</title>") && text.contains("&lt;/style&gt;&lt;script&gt;"));
        for outside in ["http:", "https:", "url(", "src=", "@import", "style=\"", "unsafe-inline", "<script", "onclick"] {
            assert!(!text.contains(outside), "{outside}");
        }
        // The hash covers exactly the text between the tags, and the stylesheet can't contain a closing tag.
        let inside = text.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap_or_default();
        assert_eq!(inside, STYLE);
        assert!(!STYLE.contains('<'));
    }

    /// The policy admits exactly the embedded style, and no footer ends its text.
    #[test]
    fn a_printed_file_has_a_footer_on_every_page() {
        let footer = Footer { text: "job 6f1c\"; } </style> \u{202e}x", at: "/print.css" };
        let body = html! { p { "x" } };
        let text = printed(&Page { title: "t", style: Style::Embedded, script: None, body: &body }, &footer);
        let inside = text.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap_or_default();
        let hash = STANDARD.encode(Sha256::digest(inside.as_bytes()));
        assert!(text.contains(&hash) && inside.contains("content: \"job 6f1c  style x\";"), "{inside}");
        assert!(inside.contains("counter(page) \" / \" counter(pages)"));
        let served = printed(&Page { title: "t", style: Style::At("/style.css"), script: None, body: &body }, &footer);
        assert!(served.contains("href=\"/print.css\"") && !served.contains("<style>"));
    }

    /// A part that forgets to sanitise a name does no harm: no control character and no bidirectional mark reaches the file.
    #[test]
    fn no_character_of_a_page_acts_on_the_display() {
        let name = "dose\u{202e}\u{1b}[2J\u{2066}\u{0}\r";
        let body = html! { h2 title=(name) { (name) } pre { (name) "\n\tx" } };
        let text = document(&Page { title: name, style: Style::Embedded, script: None, body: &body });
        assert_eq!(text.matches("dose\u{fffd} [2J\u{fffd}  ").count(), 4, "{text}");
        assert!(text.contains("\n\tx</pre>") && text.lines().all(|line| is_plain(&line.replace('\t', ""))), "{text}");
    }

    #[test]
    fn a_served_page_names_its_style_and_script() {
        let body = notice(Tone::Warning, "hospital-b <i>", &html! {}, true);
        let text = document(&Page { title: "t", style: Style::At("/style.css"), script: Some("/live.js"), body: &body });
        assert!(text.contains("href=\"/style.css\"") && text.contains("src=\"/live.js\" defer"), "{text}");
        assert!(text.contains("hospital-b &lt;i&gt;") && text.contains("role=\"status\"") && !text.contains("<style>"));
        assert!(!text.contains("referrer"), "{text}");
    }
}
