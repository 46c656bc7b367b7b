//! The owner's decision on a job's page: a checklist, the terms of an approval, and each choice with a confirming second step.

use conclave_ops::web::Fields;
use conclave_pages::site;
use maud::{Markup, html};

use crate::owner::permit::{LONGEST, Permit, PermitError};

/// Largest number of characters of a reason.
pub(super) const REASON: usize = 1000;

/// Renders both choices; `cost` is the job's share of the budget, `None` for a job that can't be assessed and so can't be approved.
pub(super) fn forms(job: &str, csrf: (&str, &str), cost: Option<&str>) -> Markup {
    let at = |act: &str| format!("/jobs/{job}/{act}");
    html! {
        div.choices {
            @if let Some(cost) = cost {
                details.choice {
                    summary { "Approve: spend up to " (cost) " of the budget…" }
                    (site::form(&at("approve"), csrf, &approval()))
                }
            }
            details.choice.against {
                summary { "Reject, with a reason…" }
                (site::form(&at("reject"), csrf, &html! {
                    p { label for="reason" { "Reason, shown to the analyst" } br; input type="text" id="reason" name="reason" required maxlength=(REASON); }
                    button.danger { "Reject it" }
                }))
            }
        }
    }
}

fn approval() -> Markup {
    let checks = [
        ("check-columns", "The columns are ones that this study may use."),
        ("check-bounds", "The bounds of the columns are public knowledge, not read off the data."),
        ("check-cost", "The cost and the risk above are acceptable for this study."),
    ];
    html! {
        fieldset {
            legend { "Check before you approve" }
            @for (id, words) in checks { p { label for=(id) { input type="checkbox" id=(id) required; " " (words) } } }
        }
        fieldset {
            legend { "Your terms, if any" }
            p { label for="purpose" { "Purpose" } br; input type="text" id="purpose" name="purpose" maxlength=(LONGEST); }
            p { label for="reference" { "Ethics number or permit" } br; input type="text" id="reference" name="reference" maxlength=(LONGEST); }
            p { label for="until" { "Last day (UTC)" } br; input type="date" id="until" name="until"; }
            p.note { "They are kept with your decision and in the ledger. After the last day the job is neither opened nor answered." }
        }
        p { "The decision is recorded permanently, and the running party acts on it within a second. Spent budget is never refunded." }
        button { "Approve this job" }
    }
}

/// Reads the terms of an approval from its form.
///
/// # Errors
/// Terms that are not valid.
pub(super) fn permit(fields: &Fields) -> Result<Permit, PermitError> {
    let [purpose, reference, until] = ["purpose", "reference", "until"].map(|field| fields.get(field).unwrap_or_default());
    Permit::new(purpose, reference, until, conclave_vault::clock::now_ms())
}
