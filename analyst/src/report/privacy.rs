//! Budget spent at each party, its guarantee, and the limits of that guarantee.

use conclave_pages::aggregation;
use conclave_pages::plot::{Budget, budget};
use conclave_pages::table::{Cell, table};
use conclave_pages::text::name;
use maud::{Markup, html};
use serde_json::Value;

use super::figures::{cell, decimals, plain, rows, text, whole};
use super::material::Material;

pub(super) fn section(material: &Material<'_>) -> Markup {
    let parties = rows(material.result, "parties");
    let limit = &material.spec.privacy.budget;
    html! {
        p {
            "No record left its owner. At each step every owner answered with whole numbers: a sum over its records, in which "
            "each record’s contribution is bounded in advance, plus fresh random noise drawn by the owner. Every answer was "
            "charged to the owner’s ledger before a record was read."
        }
        p {
            "The guarantee is the budget of each owner’s data, over all jobs and for all time. Whatever the receivers of the "
            "answers already know or compute, what they see would have been almost as likely if one protected unit had been "
            "replaced by another (“protects” below states which). Epsilon measures “almost”: no conclusion becomes more or less "
            "likely by a factor of more than e to the power epsilon, except with probability delta."
        }
        p {
            "The figures of this job are running totals of its part of those budgets. They are not separate guarantees, and "
            "epsilons of several jobs do not add up: their μ² do. The job’s limit was epsilon " (plain(limit.epsilon)) " at delta "
            (plain(limit.promised_delta())) " at each owner."
        }
        @for (index, party) in parties.iter().enumerate() { (bar(index, party)) }
        (spending(parties))
        (protected(parties))
        p { (material.spec.noise_paragraph(&decimals(material.spec.privacy.noise.sd()))) }
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
    budget(&Budget { id: &format!("budget-{index}"), party: text(party, "name"), spent, projected: None, limit })
}

fn spending(parties: &[Value]) -> Markup {
    let body: Vec<Vec<Cell>> = parties
        .iter()
        .map(|party| {
            vec![
                Cell::Name(text(party, "name").to_owned()),
                cell(&party["queries"], whole),
                cell(&party["epsilon_spent"], decimals),
                cell(&party["epsilon_zcdp"], decimals),
                cell(&party["mu_squared_spent"], decimals),
                cell(&party["delta"], plain),
                cell(&party["epsilon_budget"], plain),
            ]
        })
        .collect();
    let header = ["party", "releases", "epsilon (GDP)", "epsilon (zCDP)", "μ²", "delta", "epsilon allowed"];
    table("Spent by this job: one release per chain and round, search and warm-up included", &header, &body)
}

fn protected(parties: &[Value]) -> Markup {
    let body: Vec<Vec<Cell>> = parties
        .iter()
        .map(|party| {
            let count = match (party["records"].is_number(), party["persons"].is_number()) {
                (true, _) => cell(&party["records"], |x| format!("{} records", whole(x))),
                (_, true) => cell(&party["persons"], |x| format!("{} persons", whole(x))),
                _ => Cell::Text("not public".to_owned()),
            };
            vec![Cell::Name(text(party, "name").to_owned()), count, Cell::markup(unit(text(party, "protects")))]
        })
        .collect();
    table("Unit protected by each owner’s guarantee", &["party", "holds", "protects"], &body)
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
