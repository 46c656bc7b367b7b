//! Pages of a daemon's own server: what they have in common.

use maud::{Markup, html};

use crate::page::{Page, Style, document};

/// The script of every page that is kept up to date. It replaces parts of the page by what the server sends, and does nothing else.
pub const SCRIPT: &str = include_str!("live.js");

/// The little picture in the browser's tab.
pub const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect width=\"16\" height=\"16\" rx=\"3\" \
                        fill=\"#0072b2\"/><path d=\"M11 5a4 4 0 1 0 0 6\" fill=\"none\" stroke=\"#fff\" stroke-width=\"2\"/></svg>";

/// Where a page's own files are.
const STYLE_AT: &str = "/style.css";
const SCRIPT_AT: &str = "/live.js";

/// A page of a daemon.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// Plain text; strangers' names in it have gone through [`crate::text::plain_name`].
    pub title: &'a str,
    /// Address and words of the pages above this one.
    pub above: &'a [(&'a str, &'a str)],
    /// Name and value of the field that every form must have.
    pub word: (&'a str, &'a str),
    /// Whether there is a session to log out of.
    pub session: bool,
    /// Where the page's events come from, if it is kept up to date.
    pub events: Option<&'a str>,
    /// What it shows, below its title.
    pub body: &'a Markup,
}

/// A whole page, with the way back, the title, a line that says whether it is live, and a button to log out.
#[must_use]
pub fn served(of: &Served<'_>) -> String {
    let body = html! {
        header.site {
            nav aria-label="Where you are" { @for (address, words) in of.above { a href=(address) { (words) } " › " } }
            @if of.session {
                (form("/logout", of.word, &html! { button.quiet { "Log out" } }))
            }
        }
        h1 { (of.title) }
        @if let Some(events) = of.events {
            p.note id="link" role="status" {}
            div data-events=(events) hidden {}
        }
        (of.body)
    };
    document(&Page { title: of.title, style: Style::At(STYLE_AT), script: of.events.map(|_| SCRIPT_AT), body: &body })
}

/// A form that changes something at `action`, with the field that says that it is one of ours.
#[must_use]
pub fn form(action: &str, word: (&str, &str), content: &Markup) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name=(word.0) value=(word.1);
            (content)
        }
    }
}

/// A part of a page that is kept up to date; `polite` has screen readers told of changes to it.
#[must_use]
pub fn part(id: &str, polite: bool, content: &Markup) -> Markup {
    html! { div id=(id) aria-live=[polite.then_some("polite")] { (content) } }
}

/// How far something is, as a bar and in words. `done` beyond `all` is all.
#[must_use]
pub fn progress(done: u64, all: u64, words: &str) -> Markup {
    html! { span.progress { progress value=(done.min(all)) max=(all.max(1)) aria-label=(words) {} " " span { (words) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_carry_their_word_and_strangers_have_no_button() {
        let body = html! { p { "<b>" } };
        let page = |session| {
            let (above, word) = (&[("/", "Jobs")][..], ("csrf", "w\""));
            served(&Served { title: "t<", above, word, session, events: Some("/e"), body: &body })
        };
        let known = page(true);
        for there in ["name=\"csrf\" value=\"w&quot;\"", "data-events=\"/e\"", "<h1>t&lt;</h1>", "&lt;b&gt;", "src=\"/live.js\""]
        {
            assert!(known.contains(there), "{there} in {known}");
        }
        assert!(!page(false).contains("/logout"));
        for inline in ["style=\"", "onclick", "<script>", "javascript:"] {
            assert!(!known.contains(inline), "{inline}");
        }
    }

    #[test]
    fn the_script_reads_and_replaces_and_calls_nobody_else() {
        for bad in ["eval", "fetch(", "XMLHttpRequest", "http:", "https:", "import"] {
            assert!(!SCRIPT.contains(bad), "{bad}");
        }
        assert!(progress(9, 4, "x").into_string().contains("value=\"4\" max=\"4\""));
        assert!(progress(0, 0, "<").into_string().contains("max=\"1\" aria-label=\"&lt;\""));
    }
}
