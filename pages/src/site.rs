//! Common parts of the pages of a daemon's server.

use maud::{Markup, html};

use crate::page::{Page, Style, document};
use crate::waiting::FOR_CONSENT;

/// The script of every live page. It only replaces parts of the page with content from the server.
pub const SCRIPT: &str = include_str!("live.js");

/// The icon of the coordinator's tabs: a square with its letter.
pub const COORDINATOR_ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect width=\"16\" height=\"16\" \
                                    rx=\"3\" fill=\"#0072b2\"/><path d=\"M11 5a4 4 0 1 0 0 6\" fill=\"none\" stroke=\"#fff\" \
                                    stroke-width=\"2\"/></svg>";
/// The icon of a data owner's tabs: a shield with a keyhole.
pub const OWNER_ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><path d=\"M8 0l7 2.5v5c0 4.3-3 7.2-7 8.5-4-1.3\
                              -7-4.2-7-8.5v-5z\" fill=\"#00805f\"/><circle cx=\"8\" cy=\"6.3\" r=\"2\" fill=\"#fff\"/><path d=\"M7.1 7h1.8l.7 \
                              4.6H6.4z\" fill=\"#fff\"/></svg>";

/// Addresses of the pages' own files.
const STYLE_AT: &str = "/style.css";
const SCRIPT_AT: &str = "/live.js";

/// A page of a daemon.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// The title as plain text; names from outside must have passed [`crate::text::plain_name`].
    pub title: &'a str,
    /// The title of the browser's tab, which names the daemon and the jobs that wait for consent ([`tab`]).
    pub tab: &'a str,
    /// Address and title of the parent pages.
    pub parents: &'a [(&'a str, &'a str)],
    /// Name and value of the CSRF field in every form.
    pub csrf: (&'a str, &'a str),
    /// True if the visitor has a session to log out of.
    pub has_session: bool,
    /// The address of the page's events, for a live page.
    pub events: Option<&'a str>,
    /// The content below the title.
    pub body: &'a Markup,
}

impl<'a> Served<'a> {
    /// Creates a page without navigation, session and live parts.
    #[must_use]
    pub fn message(title: &'a str, body: &'a Markup) -> Self {
        Self { title, tab: title, parents: &[], csrf: ("", ""), has_session: false, events: None, body }
    }
}

/// Returns the title of a tab: the number of jobs that wait for consent, the page's name and the daemon's.
#[must_use]
pub fn tab(name: &str, daemon: &str, waiting: usize) -> String {
    match waiting {
        0 => format!("{name} – {daemon}"),
        n => format!("({n}) {name} – {daemon}: {FOR_CONSENT}"),
    }
}

/// Marks the title of the tab within a live part, so that it changes with the part.
#[must_use]
pub fn tab_mark(title: &str) -> Markup {
    html! { span hidden data-tab=(title) {} }
}

/// Renders a whole page with navigation, title, the state of its live connection, and a button to log out.
#[must_use]
pub fn render(page: &Served<'_>) -> String {
    let body = html! {
        header.site {
            nav aria-label="Breadcrumb" { @for (address, words) in page.parents { a href=(address) { (words) } " › " } }
            @if page.has_session {
                (form("/logout", page.csrf, &html! { button.quiet { "Log out" } }))
            }
        }
        h1 { (page.title) }
        @if let Some(events) = page.events {
            p.note id="link" role="status" {}
            div data-events=(events) hidden {}
        }
        (page.body)
    };
    document(&Page { title: page.tab, style: Style::At(STYLE_AT), script: page.events.map(|_| SCRIPT_AT), body: &body })
}

/// Builds a form that posts to `action`, with the CSRF field's name and value.
#[must_use]
pub fn form(action: &str, csrf: (&str, &str), content: &Markup) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name=(csrf.0) value=(csrf.1);
            (content)
        }
    }
}

/// Builds a live part of a page; with `polite`, screen readers announce its changes.
#[must_use]
pub fn part(id: &str, polite: bool, content: &Markup) -> Markup {
    html! { div id=(id) aria-live=[polite.then_some("polite")] { (content) } }
}

/// Builds a progress bar with its text. `done` is capped at `all`.
#[must_use]
pub fn progress(done: u64, all: u64, words: &str) -> Markup {
    html! { span.progress { (bar(done, all, words)) " " span { (words) } } }
}

/// Builds a progress bar below a sentence with its text, which screen readers hear as the bar's label. `done` is capped at `all`.
#[must_use]
pub fn bar(done: u64, all: u64, words: &str) -> Markup {
    html! { progress value=(done.min(all)) max=(all.max(1)) aria-label=(words) {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_carry_their_csrf_token_and_logout_needs_a_session() {
        let body = html! { p { "<b>" } };
        let page = |has_session| {
            let (parents, csrf) = (&[("/", "Jobs")][..], ("csrf", "w\""));
            render(&Served {
                title: "t<",
                tab: "(2) t – owner: waiting for consent",
                parents,
                csrf,
                has_session,
                events: Some("/e"),
                body: &body,
            })
        };
        let known = page(true);
        for there in [
            "<title>(2) t – owner: waiting for consent</title>",
            "href=\"/favicon.svg\"",
            "name=\"csrf\" value=\"w&quot;\"",
            "data-events=\"/e\"",
            "<h1>t&lt;</h1>",
            "&lt;b&gt;",
            "src=\"/live.js\"",
        ] {
            assert!(known.contains(there), "{there} in {known}");
        }
        assert!(!page(false).contains("/logout"));
        for inline in ["style=\"", "onclick", "<script>", "javascript:"] {
            assert!(!known.contains(inline), "{inline}");
        }
    }

    #[test]
    fn tabs_name_the_daemon_and_the_jobs_that_wait() {
        assert_eq!(tab("hospital-a", "data owner", 0), "hospital-a – data owner");
        assert_eq!(tab("Jobs", "coordinator", 1), "(1) Jobs – coordinator: waiting for consent");
        assert_eq!(tab("Jobs", "coordinator", 2), "(2) Jobs – coordinator: waiting for consent");
        assert_ne!(COORDINATOR_ICON, OWNER_ICON);
    }

    #[test]
    fn the_script_contacts_no_other_server() {
        for bad in ["eval", "fetch(", "XMLHttpRequest", "http:", "https:", "import"] {
            assert!(!SCRIPT.contains(bad), "{bad}");
        }
        assert!(progress(9, 4, "x").into_string().contains("value=\"4\" max=\"4\""));
        assert!(progress(0, 0, "<").into_string().contains("max=\"1\" aria-label=\"&lt;\""));
    }
}
