//! The guarantee in one paragraph: unit, adjacency, epsilon, delta, accountant, and who is trusted.

use std::collections::BTreeMap;

use conclave_common::epsilon;
use conclave_common::job::Algorithm;
use conclave_pages::object::{rows, text};
use conclave_pages::text::{as_written, plain};
use serde_json::Value;

use super::material::Material;

/// Writes the paragraph.
pub(super) fn guarantee(material: &Material<'_>) -> String {
    let (spec, parties) = (material.spec, rows(material.result, "parties"));
    let budget = &spec.privacy.budget;
    let spent = parties.iter().filter_map(|party| party["epsilon_spent"].as_f64()).reduce(f64::max);
    let spent = match material.result["refit_of"].as_str() {
        Some(job) => format!("; this job spent nothing beyond the releases of job {}", plain(job, 100)),
        None => spent.map(|spent| format!("; it spent at most ε = {}", epsilon::spent(spent))).unwrap_or_default(),
    };
    let extends = material.result["extends"].as_str();
    let extends = extends.map(|job| format!("; it continues job {}, whose costs μ² add to these", plain(job, 100)));
    let spent = spent + &extends.unwrap_or_default();
    let mechanism = match spec.algorithm {
        Algorithm::Ops => "Each release is a draw by the exponential mechanism, made by the owner",
        _ if spec.start_share().is_some() => {
            "Each release is a bounded sum over one owner’s records with discrete Gaussian noise that the owner drew, except the draw at which the chains \
             start, which the owner made by the exponential mechanism"
        }
        _ => "Each release is a bounded sum over one owner’s records with discrete Gaussian noise that the owner drew",
    };
    format!(
        "Protected: {}. Limit of this job at each owner: ε = {} at δ = {}{spent}. {mechanism}, and charged to the owner’s durable ledger before a record was \
         read. Accountant: Gaussian differential privacy (Dong, Roth & Su, 2022) with the exact conversion to ε and δ (Balle & Wang, 2018); the costs μ² \
         of all jobs on the same data add up, their ε do not. {} Not protected: the job itself (model, columns, bounds, priors), the numbers of records \
         that owners publish, and facts about the population that hold whichever records are in the data.",
        unit_words(parties),
        as_written(budget.epsilon),
        as_written(budget.promised_delta()),
        trusted(material)
    )
}

/// Names who must be trusted.
fn trusted(material: &Material<'_>) -> String {
    let own = "Trusted: each owner trusts its own machine and the software on it";
    let of = &material.result["aggregation"];
    match (of["colluders"].as_u64(), of["honest"].as_u64()) {
        (Some(colluders), Some(honest)) if of["mode"] == "secure" => format!(
            "{own}, and that at most {colluders} of the other owners collude with the coordinator: only sums over all owners were opened, and the noise of \
             {honest} owners protects each. If more collude, the owner’s own noise remains, and the stated ε no longer holds."
        ),
        _ => format!(
            "{own}, and nobody else: the coordinator, the analyst and all other owners may pool everything that they see."
        ),
    }
}

/// Describes the protected unit, by party where they differ: `one row, against replacement by any other`.
pub(super) fn unit_words(parties: &[Value]) -> String {
    let mut units: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for party in parties {
        units.entry(text(party, "protects")).or_default().push(plain(text(party, "name"), 80));
    }
    let is_one = units.len() == 1;
    let words = |(protects, names): (&str, Vec<String>)| match is_one {
        true => unit(protects),
        false => format!("{} at {}", unit(protects), names.join(", ")),
    };
    if units.is_empty() {
        "the unit that each owner’s ledger states".to_owned()
    } else {
        units.into_iter().map(words).collect::<Vec<_>>().join("; ")
    }
}

/// Describes a ledger's unit, `row, replace` or `person of at most 5 records, add-remove`.
fn unit(protects: &str) -> String {
    let (who, change) = protects.rsplit_once(", ").unwrap_or((protects, ""));
    let who = if who.is_empty() { "unit that the owner’s ledger states".to_owned() } else { plain(who, 80) };
    match change {
        "replace" => format!("one {who}, against replacement by any other"),
        "add-remove" => format!("one {who}, against addition or removal"),
        _ => format!("one {who}"),
    }
}
