//! What was spent at each party, what that guarantees, and what it does not.

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
            "No record left its owner. At each step every owner answered with whole numbers: a sum over its records, in which each record’s part is "
            "bounded beforehand, plus fresh random noise of the owner’s own. Every answer was charged to the owner’s ledger before a record was read."
        }
        p {
            "What is promised is the budget of each owner’s data, over all jobs and for ever: whatever the receivers of the answers know already and however "
            "they compute, what they see would have been almost as likely had one protected unit been another (“protects” below says which). How almost "
            "is what epsilon measures: no conclusion becomes more or less likely by a factor of more than e to the power epsilon, except with probability delta."
        }
        p {
            "The figures of this job are running totals of what it used of those budgets. They are not guarantees of their own, and epsilons of several "
            "jobs do not add up: their μ² do. The job was allowed epsilon " (plain(limit.epsilon)) " at delta " (plain(limit.promised_delta())) " at each owner."
        }
        @for (index, party) in parties.iter().enumerate() { (bar(index, party)) }
        (spending(parties))
        (protected(parties))
        p { (material.spec.words_on_noise(&decimals(material.spec.privacy.noise.sd()))) }
        p {
            @match aggregation::told(material.result) {
                Some(words) => { (words) " Masks rest on X25519, HKDF and HMAC with SHA-256. Not protected are the job " }
                None => {
                    "Coordinator, analyst and the other owners may put together all they have: the guarantee holds against all of them. Not protected "
                    "are the job "
                }
            }
            "itself (model, columns, bounds, priors), the counts above, and what is true of the population whoever is in the data: that is what the "
            "analysis is for. An owner’s own page to cite is made by " code { "conclave-party statement" } "."
        }
        p.note {
            "epsilon (GDP): Gaussian differential privacy, Dong, Roth & Su (2022), with the exact conversion of Balle & Wang (2018). epsilon (zCDP): "
            "zero-concentrated differential privacy, looser and rigorous by another road; it may exceed the budget, which is kept by GDP."
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
    table("What each owner’s guarantee protects", &["party", "holds", "protects"], &body)
}

/// A ledger's unit of privacy, `row, replace` or `person of at most 5 records, add-remove`, in words.
fn unit(protects: &str) -> Markup {
    let (who, change) = protects.rsplit_once(", ").unwrap_or((protects, ""));
    html! {
        @if who == "row" { "one row, not one person: weaker for a person who has several rows" }
        @else { "one " (name(who)) ", with all of those" }
        @match change {
            "replace" => ", against its being replaced by any other",
            "add-remove" => ", against its being added or left out: whether it is there at all",
            _ => {}
        }
    }
}
