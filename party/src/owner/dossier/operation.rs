//! Topics on the operation: side channels, access, retention, other releases, limits.

use conclave_pages::document::{Fact, fact};
use conclave_vault::config::{Approve, ReplyDelay};
use conclave_vault::ledger::Durability;

use super::topic::Topic;
use crate::config::PartyConfig;
use crate::ledger_views::Report;
use crate::owner::figure::figure;

pub(super) fn topics(config: &PartyConfig, report: &Report) -> Vec<Topic> {
    vec![side_channels(config), access(config), retention(config), other_releases(config), limits(report)]
}

fn side_channels(config: &PartyConfig) -> Topic {
    let delay = match config.policy.reply_delay {
        ReplyDelay::Auto => "a public delay per job, measured on simulated records before the first query".to_owned(),
        ReplyDelay::Fixed(delay) => format!("a public delay of {} ms", delay.as_millis()),
        ReplyDelay::Off => "none: the time of an answer can be observed from outside".to_owned(),
    };
    Topic {
        heading: "Side channels",
        facts: vec![
            fact("time", delay),
            fact("length", "every field of a reply has a fixed width, refusals included"),
            fact("refusals", "decided by the request, the policy and the ledger alone, never by a record"),
            fact("logs", "no line after the start depends on a record; metrics and traces are off unless configured"),
            fact("not hidden", "load of shared processors, memory and swap of this machine"),
        ],
        checks: &["conclave-party status (late replies)", "conclave-party doctor"],
    }
}

fn listed(names: Option<&Vec<String>>) -> String {
    names.map_or_else(|| "not limited".to_owned(), |names| names.join(", "))
}

fn access(config: &PartyConfig) -> Topic {
    let policy = &config.policy;
    let epsilon =
        |limit: Option<f64>| limit.map_or_else(|| "not limited".to_owned(), |limit| format!("epsilon {}", figure(limit)));
    let approve = match policy.approve {
        Approve::Manual => "the owner approves each job",
        Approve::Automatic => "the policy approves jobs within its limits, without a person",
    };
    let page = config.page.map_or_else(|| "off".to_owned(), |address| format!("on {address}, this machine only, behind a token"));
    Topic {
        heading: "Access",
        facts: vec![
            fact("jobs", approve),
            fact("analysts", listed(policy.analysts.as_ref())),
            fact("columns", listed(policy.columns.as_ref())),
            fact("models", listed(policy.models.as_ref())),
            fact("kinds of release", listed(policy.releases.as_ref())),
            fact("one job", epsilon(policy.max_epsilon_per_job)),
            fact("one analyst", epsilon(policy.max_epsilon_per_analyst)),
            fact("network", "the party dials the coordinator over mutual TLS and opens no port for it"),
            fact("analyst's identity", "each job is signed with the analyst's key, which this party checks against its own CA"),
            fact("owner's page", page),
        ],
        checks: &["conclave-party doctor", "conclave-party jobs", "conclave-party status"],
    }
}

fn retention(config: &PartyConfig) -> Topic {
    let durability = match config.durability {
        Durability::Strict => "synced to disk before each release",
        Durability::Reserve { .. } => "charges synced to disk ahead in blocks",
    };
    let mut facts = vec![
        fact("records", format!("stay in {}; never copied to another machine", config.data.path.display())),
        fact("ledger", format!("kept without end, {durability}: past releases cannot be recalled, so their charges stay")),
        fact("decisions", "kept without end beside the ledger and in its chain of hashes, with purpose, reference and last day"),
        fact(
            "permits",
            "after its last day a job is neither opened nor charged; kept with the decision and in the ledger, and the stricter of both holds",
        ),
        fact("logs", "standard error of the daemon; the service manager of this machine sets their retention"),
    ];
    if config.secure.allow {
        let days = config.secure.keep_key_days;
        facts.push(fact("mask keys", format!("deleted at the end of a secure job, or after {days} days without an answer")));
    }
    Topic { heading: "Retention", facts, checks: &["conclave-party ledger", "conclave-party backup", "conclave-party jobs"] }
}

fn other_releases(config: &PartyConfig) -> Topic {
    let not_covered = "no budget here covers them: a person's total loss includes them";
    let facts: Vec<Fact> = match config.other_releases.as_slice() {
        [] => vec![fact("declared", "none: `other_releases` in party.toml lists them")],
        all => {
            let each = all.iter().map(|release| fact("declared", release));
            each.chain([fact("note", not_covered)]).collect()
        }
    };
    Topic { heading: "Other releases of the same data", facts, checks: &["party.toml, key other_releases"] }
}

fn limits(report: &Report) -> Topic {
    let rows = "a person with several rows, where rows are protected";
    let mut facts = vec![
        fact("population", "facts that hold whichever persons are in the data are the purpose of the analyses"),
        fact("job texts", "models, columns and bounds are public"),
        fact("this machine", "anyone who can read the records here needs no query"),
    ];
    if report.unit.starts_with("row") {
        facts.push(fact("several rows", rows));
    }
    Topic { heading: "What is not protected", facts, checks: &[] }
}
