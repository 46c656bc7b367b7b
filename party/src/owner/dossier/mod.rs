//! The dossier: one document for an organisation's security and ethics reviewers.
//!
//! It follows the topics of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees". Each topic states what this
//! party's configuration and ledger say, and the command that checks it again. Statements about the software name its documentation.

mod guarantee;
mod operation;
mod registry;
mod review;
mod topic;

use conclave_common::epsilon;
use conclave_pages::document::Block;
use conclave_pages::moment::stored;
use conclave_pages::short_id::{first, shortest};
use conclave_pages::table::{Cell, Table};

use super::jobs::{JobView, jobs};
use super::papers::Papers;
use super::scale::Scale;
use crate::config::PartyConfig;
use crate::error::StartError;
use crate::ledger_views::{Report, report_kept};

use topic::Topic;

/// Returns the dossier of a party; `now` is its time, UTC.
///
/// # Errors
/// Fails if the ledger or the decisions can't be read.
pub(crate) fn dossier(config: &PartyConfig, now: &str) -> Result<Vec<Block>, StartError> {
    let report = report_kept(&config.ledger_settings())?;
    let papers = Papers::read(config)?;
    let all = jobs(&config.ledger)?;
    Ok(blocks(config, &report, &papers, &all, now))
}

/// Returns the entry for a public registry of deployments, as YAML.
///
/// # Errors
/// Those of [`dossier`].
pub(crate) fn registry_entry(config: &PartyConfig, now: &str) -> Result<String, StartError> {
    let report = report_kept(&config.ledger_settings())?;
    Ok(registry::entry(config, &report, &Papers::read(config)?, now))
}

fn blocks(config: &PartyConfig, report: &Report, papers: &Papers, jobs: &[JobView], now: &str) -> Vec<Block> {
    let scale = Scale::new(report, config);
    let mut blocks = vec![
        Block::Title(format!("Privacy dossier of {}", papers.organisation)),
        Block::Text(format!(
            "For the organisation's security and ethics reviewers. Created on {} from the configuration and the ledger {}. Each section \
             ends with the commands that check it again. The topics are those of NIST SP 800-226; the documentation of the software has the \
             argument and its proofs.",
            stored(now),
            config.ledger.display()
        )),
        Block::Facts(papers.facts()),
        Block::Shares(scale.shares("budget")),
        Block::Text(scale.in_epsilon()),
    ];
    let topics = guarantee::topics(config, report).into_iter().chain(operation::topics(config, report)).chain(review::topics());
    blocks.extend(topics.flat_map(Topic::blocks));
    blocks.extend(jobs_table(config, jobs));
    blocks.extend([
        Block::Section("Entry for a registry of deployments".to_owned()),
        Block::Text(
            "In the format of the public registry of deployments of differential privacy (OpenDP). Complete the empty fields before it is sent."
                .to_owned(),
        ),
        Block::Verbatim(registry::entry(config, report, papers, now)),
    ]);
    blocks.push(Block::Section("Signatures".to_owned()));
    blocks.push(Block::Signatures(vec!["Security: name, place, date".to_owned(), "Ethics: name, place, date".to_owned()]));
    blocks
}

fn jobs_table(config: &PartyConfig, jobs: &[JobView]) -> Vec<Block> {
    let heading = Block::Section("Jobs so far".to_owned());
    if jobs.is_empty() {
        return vec![heading, Block::Text("No job has been submitted to this party yet.".to_owned())];
    }
    let terms = |job: &JobView| job.permit().map_or_else(|| "none".to_owned(), |permit| permit.words());
    let length = shortest(&jobs.iter().map(|job| &*job.request.job).collect::<Vec<_>>());
    let table = Table::new(
        "All jobs of this party",
        jobs,
        &[
            ("job", &|job: &JobView| Cell::name(first(&job.request.job, length))),
            ("name", &|job| Cell::name(job.name())),
            ("analyst", &|job| Cell::name(&job.request.analyst)),
            ("state", &|job| Cell::text(job.state_words())),
            ("epsilon spent", &|job| Cell::number(epsilon::spent(job.epsilon_spent(&config.budget)))),
            ("terms", &|job| Cell::text(terms(job))),
        ],
    );
    vec![heading, Block::Table(table), Block::Text("Check again: conclave-party jobs; conclave-party statement JOB.".to_owned())]
}

#[cfg(test)]
#[path = "../tests/dossier.rs"]
mod tests;
