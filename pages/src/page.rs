//! Whole pages: the one stylesheet, and what a browser may do with a page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

/// The stylesheet of every page. It refers to nothing outside itself.
pub const STYLE: &str = include_str!("style.css");

/// Where a page's stylesheet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style<'a> {
    /// In the page, which then is one file that needs nothing else and says so: everything else is forbidden it, by a policy that
    /// admits this stylesheet by its hash.
    Inside,
    /// At this address of the page's own server, whose headers say what the page may do.
    At(&'a str),
}

/// What a page is made of.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The title, plain text; strangers' names in it have gone through [`crate::text::plain_name`].
    pub title: &'a str,
    /// Its stylesheet.
    pub style: Style<'a>,
    /// Address of a script of the page's own server.
    pub script: Option<&'a str>,
    /// What stands in its body.
    pub body: &'a Markup,
}

/// The page as HTML.
#[must_use]
pub fn document(page: &Page<'_>) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                @if page.style == Style::Inside {
                    meta http-equiv="Content-Security-Policy" content=(file_policy());
                }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // A server of ours says it in a header, and must not forbid the page to name itself to its own forms.
                @if page.style == Style::Inside { meta name="referrer" content="no-referrer"; }
                title { (page.title) }
                @match page.style {
                    Style::Inside => style { (PreEscaped(STYLE)) },
                    Style::At(address) => link rel="stylesheet" href=(address);,
                }
                @if let Some(address) = page.script { script src=(address) defer {} }
            }
            body {
                a.skip href="#main" { "To the content" }
                main id="main" { (page.body) }
            }
        }
    };
    markup.into_string()
}

/// The policy of a file that needs nothing: its own stylesheet by hash, and nothing else.
fn file_policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

/// A sentence to be seen first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// Something to know.
    Note,
    /// Something to beware of: a warning, a paused party.
    Beware,
}

/// A box with a heading that stands out; `live` has screen readers told of changes to it.
#[must_use]
pub fn notice(tone: Tone, heading: &str, body: &Markup, live: bool) -> Markup {
    // A word beside the colour, for whoever does not see it.
    let (class, mark) = match tone {
        Tone::Good => ("notice good", "✓"),
        Tone::Note => ("notice", "i"),
        Tone::Beware => ("notice beware", "!"),
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
    use super::*;

    #[test]
    fn a_file_refers_to_nothing() {
        let body = html! { p { "</style><script>" } };
        let text = document(&Page { title: "<x>\"", style: Style::Inside, script: None, body: &body });
        assert!(text.contains("<title>&lt;x&gt;&quot;</title>") && text.contains("&lt;/style&gt;&lt;script&gt;"));
        for outside in ["http:", "https:", "url(", "src=", "@import", "style=\"", "unsafe-inline", "<script", "onclick"] {
            assert!(!text.contains(outside), "{outside}");
        }
        // The hash is over exactly what stands between the tags, and the stylesheet can't end itself.
        let inside = text.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap_or_default();
        assert_eq!(inside, STYLE);
        assert!(!STYLE.contains('<'));
    }

    #[test]
    fn a_served_page_names_its_style_and_script() {
        let body = notice(Tone::Beware, "hospital-b <i>", &html! {}, true);
        let text = document(&Page { title: "t", style: Style::At("/style.css"), script: Some("/live.js"), body: &body });
        assert!(text.contains("href=\"/style.css\"") && text.contains("src=\"/live.js\" defer"), "{text}");
        assert!(text.contains("hospital-b &lt;i&gt;") && text.contains("role=\"status\"") && !text.contains("<style>"));
        assert!(!text.contains("referrer"), "{text}");
    }
}
