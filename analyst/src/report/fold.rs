//! Parts of the page that are folded until the reader opens them. A folded part is not printed.

use conclave_pages::page::{Tone, notice};
use conclave_pages::verdict::Verdict;
use maud::{Markup, html};
use serde_json::Value;

/// Number of parameters above which long tables are folded.
pub(super) const MANY: usize = 12;

/// Renders a part behind its summary.
pub(super) fn folded(summary: &str, body: &Markup) -> Markup {
    html! { details.fold { summary { (summary) } (body) } }
}

/// Renders figures; those of an answer that is not usable are folded, with a warning inside.
pub(super) fn folded_unless_usable(result: &Value, body: Markup) -> Markup {
    if Verdict::of(result).is_usable() {
        return body;
    }
    let warning = notice(Tone::Warning, "Not usable: no figure of this run can be reported", &html! {}, false);
    folded("Look anyway", &html! { (warning) (body) })
}

/// Renders a part, folded if `count` items are many.
pub(super) fn folded_if_many(count: usize, summary: &str, body: Markup) -> Markup {
    if count > MANY { folded(summary, &body) } else { body }
}
