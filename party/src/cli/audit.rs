//! `conclave-party audit`.

use std::path::PathBuf;

use clap::Args;
use conclave_pages::table::{Cell, Table};
use conclave_privacy::accounting::{Budget, Honest, SamplingProbability, gaussian_dp};
use serde::Serialize;

use super::common::{print, print_json};
use crate::audit::{Audit, LEAST, NoiseParties, Report, SampledAudit, SampledKind, SampledReport, svg};
use crate::config::PartyConfig;
use crate::error::StartError;

/// Delta of an audit without a configuration.
const DELTA: f64 = 1e-6;

#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// Audit the budget, the unit of privacy and the noise floor of this configuration. Its records and ledger are not
    /// touched: the records are simulated.
    #[arg(long, value_name = "FILE", required_unless_present = "synthetic", conflicts_with = "synthetic")]
    config: Option<PathBuf>,
    /// Audit without a configuration.
    #[arg(long)]
    synthetic: bool,
    /// Replicates in each of the two worlds; more replicates give a tighter bound.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    replicates: u64,
    /// The mu that each replicate spends, instead of the configuration's budget.
    #[arg(long, value_name = "MU")]
    mu_b: Option<f64>,
    /// Queries per replicate.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    queries: u32,
    /// Audit masked answers, priced by the noise of this number of parties. The noise of the others is simulated; the claim is
    /// the charge.
    #[arg(long, value_name = "H", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..i64::from(Honest::MOST)))]
    honest: u32,
    /// With --honest: simulate no other party's noise, as if all of them colluded with the coordinator. The claim is then the
    /// ledger's figure for that case.
    #[arg(long)]
    all_collude: bool,
    /// Audit subsampled releases at this sampling rate: a block of --queries of them.
    #[arg(long, value_name = "Q", conflicts_with_all = ["mu_b", "honest", "all_collude", "out"])]
    subsampled: Option<f64>,
    /// With --subsampled: audit gradients (one vector per release) instead of log likelihood ratios.
    #[arg(long, requires = "subsampled")]
    gradients: bool,
    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Write a plot (SVG).
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn audit(args: &AuditArgs) -> Result<(), StartError> {
    if args.replicates < LEAST {
        return Err(StartError::System(format!("--replicates is {}: at least {LEAST} are needed for a bound", args.replicates)));
    }
    let config = args.config.as_deref().map(PartyConfig::load).transpose()?;
    let given = config.as_ref().map(|config| config.budget);
    if let Some(probability) = args.subsampled {
        return subsampled(args, probability, given);
    }
    let noise_sd = config.as_ref().map_or(1.0, |config| config.policy.min_noise_sd.max(1.0));
    let honest = Honest::new(args.honest).unwrap_or_default();
    if args.all_collude && honest == Honest::ALONE {
        return Err(StartError::System(
            "--all-collude needs --honest of at least 2: otherwise no other party's noise protects".into(),
        ));
    }
    let noise_parties = if args.all_collude { NoiseParties::all_collude(honest) } else { NoiseParties::honest(honest) };
    let audit =
        Audit { noise_parties, budget: budget(given, args.mu_b)?, replicates: args.replicates, queries: args.queries, noise_sd };
    let report = audit.run().map_err(StartError::System)?;
    if let Some(path) = &args.out {
        std::fs::write(path, svg(&report)).map_err(|e| StartError::System(format!("{}: {e}", path.display())))?;
    }
    if let Some(config) = &config {
        // The owner's page shows the latest audit. A folder that can't be written does not invalidate the audit.
        let path = crate::page::audit_of(&config.ledger);
        if let Err(e) = std::fs::write(&path, svg(&report)) {
            tracing::warn!("{}: {e}; the party's page will not show this audit", path.display());
        }
    }
    conclude(args, &report, report.holds, text)
}

fn subsampled(args: &AuditArgs, probability: f64, given: Option<Budget>) -> Result<(), StartError> {
    let probability = SamplingProbability::at_least(probability).ok().filter(|q| *q < SamplingProbability::ONE);
    let probability = probability
        .ok_or_else(|| StartError::System("--subsampled: the probability must be at least 2^-20 and below 1".into()))?;
    let unit = given.map(|budget| budget.unit).unwrap_or_default();
    let kind = if args.gradients { SampledKind::Gradients } else { SampledKind::Ratios };
    let audit = SampledAudit { kind, unit, probability, releases: args.queries, replicates: args.replicates };
    let report = audit.run(&|_| {}).map_err(StartError::System)?;
    conclude(args, &report, report.holds, sampled_text)
}

/// Prints a report, and fails if it contradicts the claim.
fn conclude<T: Serialize>(args: &AuditArgs, report: &T, holds: bool, text: impl Fn(&T) -> String) -> Result<(), StartError> {
    if args.json {
        print_json(report)?;
    } else {
        print(&text(report))?;
    }
    if holds { Ok(()) } else { Err(StartError::System("the audit contradicts the claim; see above".into())) }
}

fn sampled_text(r: &SampledReport) -> String {
    let found = found(r.holds, &r.findings);
    format!(
        "{} replicates per world of a block of {} releases ({} at sampling rate {}) in {} messages.\nmu: claimed {:.4}, at least \
         {:.4} (95%)\n\
         epsilon at delta {:e}: claimed {:.4}, at least {:.4} (95%, from error rates only)\n{found}",
        r.replicates,
        r.releases,
        r.kind,
        r.probability,
        r.messages,
        r.mu_claimed,
        r.mu_lower,
        r.delta,
        r.epsilon_claimed,
        r.epsilon_lower
    )
}

fn budget(given: Option<Budget>, mu: Option<f64>) -> Result<Budget, StartError> {
    let wrong = |e: &dyn std::fmt::Display| StartError::System(format!("--mu-b: {e}"));
    match (mu, given) {
        (None, Some(budget)) => Ok(budget),
        (mu, given) => {
            let (mu, delta) = (mu.unwrap_or(1.0), given.map_or(DELTA, |b| b.delta));
            if !(mu > 0.0 && mu <= 10.0) {
                return Err(wrong(&"the value must be above 0 and at most 10"));
            }
            let budget = Budget::new(gaussian_dp::epsilon(mu, delta), delta).map_err(|e| wrong(&e))?;
            Ok(budget.of(given.unwrap_or(budget).unit))
        }
    }
}

fn text(r: &Report) -> String {
    let rows = [
        ("mu".to_owned(), Some(r.mu_claimed), r.mu_lower),
        (format!("epsilon at delta {:e}", r.delta), Some(r.epsilon_claimed), r.epsilon_at_mu_lower),
        ("epsilon, from error rates only".to_owned(), None, r.epsilon_lower),
    ];
    let bounds = Table::new(
        "",
        &rows,
        &[
            ("", &|(name, ..)| Cell::text(name)),
            ("claimed", &|(_, claimed, _)| Cell::number(claimed.map(|x| format!("{x:.4}")).unwrap_or_default())),
            ("at least (95%)", &|(.., least)| Cell::number(format!("{least:.4}"))),
        ],
    );
    let mut text = format!(
        "Two simulated shards that differ in one extreme record; {} replicates of a whole budget on each, {} queries per \
         replicate, through the answer path of `run` ({:.0} s).\n\n{}\nThe best test classified {} of {} replicates without the \
         record as with it, and {} of {} the other way round.\n",
        r.replicates,
        r.queries,
        r.seconds,
        bounds.text(),
        r.false_positives.0,
        r.false_positives.1,
        r.false_negatives.0,
        r.false_negatives.1,
    );
    match (r.honest, r.all_collude) {
        (1, _) => {}
        (honest, false) => {
            let others = if honest == 2 { "other party".to_owned() } else { format!("{} others", honest - 1) };
            text.push_str(&format!(
                "The answers are masked and priced by the noise of {honest} parties; the noise of the {others} was simulated.\n"
            ));
        }
        (honest, true) => text.push_str(&format!(
            "The answers are masked and priced by the noise of {honest} parties, of which all others collude here: the claim is \
             the ledger's figure for that case.\n"
        )),
    }
    text + &found(r.holds, &r.findings)
}

fn found(holds: bool, findings: &[String]) -> String {
    match holds {
        true => "No evidence against the claim.".to_owned(),
        false => findings.iter().fold("FINDINGS:".to_owned(), |text, finding| format!("{text}\n- {finding}")),
    }
}
