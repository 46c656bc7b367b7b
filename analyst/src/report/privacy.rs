//! Budget spent at each party, its guarantee, and the limits of that guarantee.

use conclave_pages::object::{rows, text};
use conclave_pages::plot::{Budget, budget};
use conclave_pages::precision::rough;
use conclave_pages::table::{Cell, Column, Table};
use conclave_pages::text::{as_written, name, whole};
use conclave_pages::{aggregation, run};
use maud::{Markup, html};
use serde_json::Value;

use super::material::Material;

pub(super) fn section(material: &Material<'_>) -> Markup {
    let parties = rows(material.result, "parties");
    let limit = &material.spec.privacy.budget;
    html! {
        p {
            "No record left its owner. Every owner answered each query with whole numbers: a sum over its records, in which "
            "each record’s contribution is bounded in advance, plus fresh random noise drawn by the owner. Every answer was "
            "charged to the owner’s ledger before a record was read."
        }
        p {
            "The guarantee is the budget of each owner’s data, over all jobs and for all time. Whatever the receivers of the "
            "answers already know or compute, one protected unit changes how likely a conclusion is by a factor of at most e to the power epsilon, "
            "except with probability delta. “Protects” below states the unit, and with what it is compared."
        }
        p {
            "The figures of this job are running totals of its part of those budgets. They are not separate guarantees, and "
            "epsilons of several jobs do not add up: their μ² do. The job’s limit was epsilon " (as_written(limit.epsilon)) " at delta "
            (as_written(limit.promised_delta())) " at each owner."
        }
        @for (index, party) in parties.iter().enumerate() { (bar(index, party)) }
        (spending(parties).html())
        (protected(parties).html())
        p { (material.spec.noise_paragraph(&rough(material.spec.privacy.noise.sd()))) }
        p {
            @match aggregation::summary(material.result) {
                Some(words) => { (words) " Masks rest on X25519, HKDF and HMAC with SHA-256. Not protected are the job " }
                None => {
                    "The coordinator, the analyst and the other owners may pool all they have: the guarantee holds against all "
                    "of them. Not protected are the job "
                }
            }
            "itself (model, columns, bounds, priors), the counts above, and facts about the population that hold whichever "
            "persons are in the data: learning those is the purpose of the analysis. An owner creates a page to cite with " code { "conclave-party statement" } "."
        }
        p.note {
            "epsilon (GDP): Gaussian differential privacy, Dong, Roth & Su (2022), with the exact conversion of Balle & Wang (2018). epsilon (zCDP): "
            "zero-concentrated differential privacy, looser, and rigorous by a different argument; it may exceed the budget, "
            "which is accounted by GDP."
        }
    }
}

fn bar(index: usize, party: &Value) -> Markup {
    let figure = |key: &str| party[key].as_f64().unwrap_or(f64::NAN);
    let (spent, limit) = (figure("epsilon_spent"), figure("epsilon_budget"));
    let (id, party) = (format!("budget-{index}"), text(party, "name"));
    budget(&Budget { id: &id, party, spent, projected: None, limit, has_ended: true })
}

fn spending(parties: &[Value]) -> Table {
    let caption = "Spent by this job, search and warm-up included";
    Table::new(caption, parties, &[("party", &|party| Cell::name(text(party, "name")))]).beside(parties, &run::SPENDING)
}

fn protected(parties: &[Value]) -> Table {
    let holds = |party: &Value| match (party["records"].is_number(), party["persons"].is_number()) {
        (true, _) => Cell::figure(&party["records"], |x| format!("{} records", whole(x))),
        (_, true) => Cell::figure(&party["persons"], |x| format!("{} persons", whole(x))),
        _ => Cell::text("not public"),
    };
    let columns: [Column<'_, Value>; 3] = [
        ("party", &|party| Cell::name(text(party, "name"))),
        ("holds", &holds),
        ("protects", &|party| Cell::markup(unit(text(party, "protects")))),
    ];
    Table::new("Unit protected by each owner’s guarantee", parties, &columns)
}

/// Describes a ledger's unit of privacy, `row, replace` or `person of at most 5 records, add-remove`.
fn unit(protects: &str) -> Markup {
    let (who, change) = protects.rsplit_once(", ").unwrap_or((protects, ""));
    html! {
        @if who == "row" { "one row, not one person: weaker for a person who has several rows" }
        @else { "one " (name(who)) ", with all of these records" }
        @match change {
            "replace" => ", against replacement by any other",
            "add-remove" => ", against addition or removal: even its presence is protected",
            _ => {}
        }
    }
}
