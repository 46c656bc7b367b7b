//! Parts of the page that are folded until the reader opens them. A folded part is not printed.

use maud::{Markup, html};

/// Number of parameters above which long tables are folded.
pub(super) const MANY: usize = 12;

/// Renders a part behind its summary.
pub(super) fn folded(summary: &str, body: &Markup) -> Markup {
    html! { details.fold { summary { (summary) } (body) } }
}

/// Renders a part, folded if `count` items are many.
pub(super) fn folded_if_many(count: usize, summary: &str, body: Markup) -> Markup {
    if count > MANY { folded(summary, &body) } else { body }
}
