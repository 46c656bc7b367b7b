//! `conclave-party status`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use conclave_pages::document::{self, Block, fact};
use conclave_pages::moment::stored;
use conclave_pages::short_id::{SHORT, first};
use conclave_pages::text::thousands;
use conclave_proto::ca;
use serde_json::json;

use super::common::{Common, load, print, print_json};
use super::jobs;
use crate::config::PartyConfig;
use crate::error::StartError;
use crate::ledger_views::report_kept;
use crate::owner::{JobView, Scale, State, jobs as all, masked, pending_job, unit_of_privacy};
use crate::presence::{Presence, Standing, clock_warning, running};
use conclave_vault::answer::ReplyCounts;
use conclave_vault::config::Approve;

/// Time before a certificate's end from which a warning is shown.
const SOON: Duration = Duration::from_secs(30 * 86_400);
/// Spent share of the budget from which a warning is shown.
const NEARLY_SPENT: f64 = 0.9;

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    common: Common,
    /// Show only whether the party runs and answers, without reading data or ledger: for a health check.
    #[arg(long)]
    brief: bool,
    /// Print the --brief line, and exit with 4 too if the party is not attached to the coordinator: for services that depend on
    /// it.
    #[arg(long)]
    attached: bool,
    /// Print the --brief line, and succeed for every party that a restart would not help: 0 unless it hangs (1) or does not run
    /// (4). For a liveness check: one that fails restarts the process, and a halted party must not be stopped
    #[arg(long, conflicts_with = "attached")]
    alive: bool,
}

pub(super) fn status(args: &StatusArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let standing = Standing::of(&config.ledger);
    if args.brief || args.attached || args.alive {
        // Reads only the daemon's status file: a check every few seconds must not read ledger or data.
        let daemon = running(&config.ledger);
        if args.common.json {
            let (state, alive) = (standing.as_str(), standing.is_alive());
            print_json(
                &json!({ "party": config.name, "running": daemon.is_some(), "state": state, "alive": alive, "daemon": daemon }),
            )?;
        } else {
            print(&format!("{}: {}", config.name, attached(daemon.as_ref(), &config)))?;
        }
    } else {
        print_full(&config, args.common.json)?;
    }
    if args.alive && standing.is_alive() {
        return Ok(());
    }
    health(&config, standing, args.attached)
}

/// Maps the daemon's state to the exit code. A party without its coordinator is healthy unless attachment is required: it redials
/// by itself.
fn health(config: &PartyConfig, standing: Standing, must_be_attached: bool) -> Result<(), StartError> {
    let name = &config.name;
    match standing {
        Standing::NotRunning => Err(StartError::NotRunning(format!("{name} does not run"))),
        Standing::Hung(seconds) => {
            let process = running(&config.ledger).flatten().map(|daemon| format!("process {} ", daemon.pid)).unwrap_or_default();
            Err(StartError::System(format!("{name} hangs: {process}has not reported for {seconds} s")))
        }
        Standing::Halted(problem) => Err(StartError::System(format!("{name} has halted; do not stop it: {problem}"))),
        Standing::Obstructed(problem) => Err(StartError::System(format!("the ledger answers nothing: {problem}"))),
        Standing::Answers if must_be_attached && !running(&config.ledger).flatten().is_some_and(|p| p.attached) => {
            Err(StartError::NotRunning(format!("{name} is not attached to {}", config.coordinator)))
        }
        Standing::Answers => Ok(()),
    }
}

fn print_full(config: &PartyConfig, as_json: bool) -> Result<(), StartError> {
    let ledger = report_kept(&config.ledger_settings());
    let jobs = if ledger.is_ok() { all(&config.ledger)? } else { Vec::new() };
    let daemon = running(&config.ledger);
    let (expires, mut warnings) = certificate(config);
    match &ledger {
        Ok(report) if report.share_spent >= NEARLY_SPENT => {
            warnings.push(format!("{:.1}% of the data's budget is spent; it is never refilled", 100.0 * report.share_spent));
        }
        Ok(_) => {}
        Err(e) => warnings.push(format!("the ledger: {e}")),
    }
    if let Some(problem) = daemon.as_ref().and_then(Option::as_ref).and_then(|p| p.ledger.as_ref()) {
        warnings.push(format!("the ledger answers nothing: {problem}"));
    }
    warnings.extend(daemon.iter().flatten().filter_map(|daemon| clock_warning(daemon.clock_ahead_s?)));
    warnings.extend(disagreements(&jobs));
    warnings.extend(pending_job::warnings(config, &jobs));
    let waiting = jobs.iter().filter(|job| job.state() == State::Awaiting).count();
    if as_json {
        return print_json(&json!({
            "party": config.name,
            "running": daemon.is_some(),
            "state": Standing::of(&config.ledger).as_str(),
            "daemon": daemon.flatten(),
            "approve": if config.policy.approve == Approve::Manual { "manual" } else { "automatic" },
            "protects": config.budget.unit.to_string(),
            "unit_of_privacy": unit_of_privacy(config.budget.unit),
            "budget": ledger.as_ref().ok(),
            "scale": ledger.as_ref().ok().map(|report| Scale::new(report, config).value()),
            "ledger_error": ledger.as_ref().err().map(ToString::to_string),
            "jobs": jobs.iter().map(|job| jobs::value(job, config)).collect::<Vec<_>>(),
            "awaiting": waiting,
            "certificate_expires": expires,
            "warnings": warnings,
        }));
    }
    let mut facts = Vec::new();
    let mut scale = Vec::new();
    if let Ok(report) = &ledger {
        let of = Scale::new(report, config);
        scale = vec![Block::Shares(of.shares("budget")), Block::Text(of.in_epsilon())];
        facts.push(fact("released", format!("{} numbers in {} jobs", thousands(report.queries), report.jobs)));
        facts.extend(report.if_all_collude.as_ref().map(|collude| fact("collusion", masked::total_if_all_collude(collude))));
        facts.extend(report.masked_jobs.iter().filter(|job| job.open).flat_map(masked::status));
    }
    let count = |state: State| format!("{} {}", jobs.iter().filter(|job| job.state() == state).count(), state.as_str());
    let counts: Vec<String> = State::ALL.into_iter().filter(|state| *state != State::Awaiting).map(count).collect();
    facts.push(fact("jobs", format!("{waiting} waiting for your decision, {}", counts.join(", "))));
    if let Some(ReplyCounts { held, overruns }) = daemon.iter().flatten().map(|p| p.replies).next()
        && held > 0
    {
        facts.push(fact("replies", format!("{held} held to the reply delay, {overruns} of them late")));
    }
    let terms =
        |job: &JobView| Some(fact("permit", format!("job {}: {}", first(&job.request.job, SHORT), job.permit()?.words())));
    facts.extend(jobs.iter().filter(|job| job.is_live()).filter_map(terms));
    facts.push(fact("privacy", unit_of_privacy(config.budget.unit)));
    facts.extend(expires.map(|expires| fact("identity", format!("certificate valid until {expires}"))));
    let mut blocks = vec![Block::Heading(format!("{}: {}", config.name, attached(daemon.as_ref(), config))), Block::Facts(facts)];
    blocks.extend(scale);
    blocks.extend(warnings.into_iter().map(Block::Warning));
    print(&document::text(&blocks))
}

/// Names each job whose terms in the file of decisions are not those in the ledger.
fn disagreements(jobs: &[JobView]) -> impl Iterator<Item = String> + '_ {
    jobs.iter().flat_map(|job| job.terms.disagreements().into_iter().map(|why| format!("job {}: {why}", job.request.job)))
}

fn attached(daemon: Option<&Option<Presence>>, config: &PartyConfig) -> String {
    let Some(daemon) = daemon else { return "not running".to_owned() };
    let Some(Presence { pid, started, since, attached, .. }) = daemon else { return "running".to_owned() };
    if let Some(seconds) = daemon.as_ref().and_then(Presence::silent) {
        return format!("hangs: process {pid} runs since {}, and has not reported for {seconds} s", stored(started));
    }
    let attached = if *attached { "attached" } else { "not attached" };
    let (started, since) = (stored(started), stored(since));
    format!("running since {started} (process {pid}), {attached} to {} since {since}", config.coordinator)
}

/// Returns the certificate's end date as `YYYY-MM-DD`, and its warnings.
fn certificate(config: &PartyConfig) -> (Option<String>, Vec<String>) {
    let path = config.identity.join("certificate.pem");
    let pem = match std::fs::read_to_string(&path) {
        Ok(pem) => pem,
        Err(e) => {
            return (None, vec![format!("{}: {e}; the consortium's CA issues it for the signing request", path.display())]);
        }
    };
    let end = match ca::not_after(&pem) {
        Ok(end) => end,
        Err(fault) => return (None, vec![format!("{}: {fault}", path.display())]),
    };
    let now = SystemTime::now();
    let day = day(end);
    let warnings = if end <= now {
        vec![format!("the certificate expired on {day}: the party can't attach; request a new one with `conclave-party renew`")]
    } else if end < now + SOON {
        vec![format!("the certificate expires on {day}: request a new one with `conclave-party renew`; no restart is needed")]
    } else {
        Vec::new()
    };
    (Some(day), warnings)
}

fn day(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map(|d| d.as_secs()).unwrap_or_default();
    let time = i64::try_from(seconds).ok().and_then(|s| time::OffsetDateTime::from_unix_timestamp(s).ok());
    time.map(|t| t.date().to_string()).unwrap_or_default()
}
