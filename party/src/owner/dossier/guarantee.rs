//! Topics on the guarantee itself: variant, unit, adjacency, mechanism, composition, trust.

use conclave_common::epsilon;
use conclave_pages::document::fact;
use conclave_pages::moment::stored;
use conclave_pages::precision::rough;
use conclave_privacy::accounting::Adjacency;

use super::topic::Topic;
use crate::config::PartyConfig;
use crate::ledger_views::Report;
use crate::owner::figure::figure;
use crate::owner::odds::{between, of_100, right, right_guess};
use crate::owner::text::unit_of_privacy;

pub(super) fn topics(config: &PartyConfig, report: &Report) -> Vec<Topic> {
    vec![variant(config, report), unit(config), mechanism(config), composition(report), trust(config, report)]
}

fn variant(config: &PartyConfig, report: &Report) -> Topic {
    let mu = report.mu_squared_budget.sqrt();
    let who = if config.budget.unit.records_per_person().is_some() { "person" } else { "row" };
    let between = between(config.budget.unit);
    let guess = format!(
        "of 100 guesses {between} of one {who}, {} are right once the whole budget is spent; 50 without any release",
        right(of_100(right_guess(mu) + report.delta_reserve))
    );
    let (epsilon, delta) = (figure(report.epsilon_budget), figure(report.delta_promised));
    let mut facts = vec![
        fact("guarantee", format!("({epsilon}, {delta})-differential privacy of all releases together, for ever")),
        fact("variant", format!("Gaussian differential privacy with mu {}, converted exactly to epsilon and delta", rough(mu))),
        fact("in words", guess),
    ];
    if report.delta_reserve > 0.0 {
        let reserve = format!("{} of delta is set aside for subsampled releases", figure(report.delta_reserve));
        facts.push(fact("reserve", reserve));
    }
    Topic { heading: "Variant and parameters", facts, checks: &["conclave-party budget", "conclave account"] }
}

fn unit(config: &PartyConfig) -> Topic {
    let unit = config.budget.unit;
    let adjacency = match unit.adjacency {
        Adjacency::Replace => "replacement of one unit: the number of units is public (bounded differential privacy)",
        Adjacency::AddRemove => {
            "addition or removal of one unit: the number of units is protected (unbounded differential privacy)"
        }
    };
    let several = "a person with records at several owners is protected by each owner's own budget; the squares of mu add, and over the one sum of a masked job mu itself";
    Topic {
        heading: "Unit of privacy and adjacency",
        facts: vec![
            fact("unit", format!("the guarantee {}", unit_of_privacy(unit))),
            fact("adjacency", adjacency),
            fact("several owners", several),
        ],
        checks: &["conclave-party status", "conclave-party doctor"],
    }
}

fn mechanism(config: &PartyConfig) -> Topic {
    let floor = format!(
        "standard deviation at least {} in log-likelihood units, at least {} of the sensitivity for vectors",
        figure(config.policy.min_noise_sd),
        figure(config.policy.min_noise_multiplier)
    );
    Topic {
        heading: "Mechanism",
        facts: vec![
            fact(
                "noise",
                "discrete Gaussian on integer sums, from the operating system's random generator, fresh for every charge",
            ),
            fact(
                "sensitivity",
                "each record's contribution is clamped to a public bound that follows from the charge, not from the data",
            ),
            fact(
                "bounds",
                "column bounds are public and declared by the analyst; the owner is warned of bounds that equal the data's extremes",
            ),
            fact("noise floor", floor),
        ],
        checks: &["conclave-party audit --config party.toml", "conclave-party doctor"],
    }
}

fn composition(report: &Report) -> Topic {
    let spent = format!(
        "{:.2}% of the budget in mu squared, {} numbers in {} jobs since {}",
        100.0 * report.share_spent,
        report.queries,
        report.jobs,
        stored(&report.created)
    );
    Topic {
        heading: "Composition",
        facts: vec![
            fact("accountant", "a filter on the sum of mu squared: queries may depend on earlier answers"),
            fact(
                "ledger",
                "each charge is on disk before a record is read; entries form a chain of hashes; the budget is never refilled",
            ),
            fact("repeats", "repeating a query returns identical bytes; a different query under the same key is refused"),
            fact("spent", spent),
        ],
        checks: &["conclave-party budget", "conclave-party export and conclave verify-ledger", "conclave-party verify JOB"],
    }
}

fn trust(config: &PartyConfig, report: &Report) -> Topic {
    let has_masked = config.secure.allow || report.if_all_collude.is_some();
    let against = match has_masked {
        false => "the coordinator, all analysts and all other owners, together: the guarantee holds against all of them",
        true => {
            "the coordinator, all analysts, and at most the number of other owners that a masked job states; should more collude, each charge of such a job \
             counts for more, up to the limit below"
        }
    };
    let mut facts = vec![
        fact("not trusted", against),
        fact("trusted", "this machine, its operators and the software's trusted crates, privacy and vault"),
    ];
    match (config.secure.allow, config.secure.max_epsilon_if_all_collude) {
        (false, _) => facts.push(fact("secure jobs", "not admitted")),
        (true, limit) => {
            let limit = limit.map_or_else(|| "without a limit".to_owned(), |limit| format!("epsilon at most {}", figure(limit)));
            facts.push(fact("secure jobs", format!("admitted; should all other parties collude: {limit}")));
        }
    }
    if let Some(collude) = &report.if_all_collude {
        facts.push(fact("if all others collude", format!("epsilon {} is spent", epsilon::spent(collude.epsilon_spent))));
    }
    Topic { heading: "Trust model", facts, checks: &["conclave-party verify JOB", "conclave-party fingerprint"] }
}
