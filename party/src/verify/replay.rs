//! Fetches a job's log and passes it, piece by piece, to the checks.

use std::path::PathBuf;

use conclave_common::job::JobSpec;
use conclave_proto::error::ErrorCode;
use conclave_proto::log_digest::LogDigest;
use conclave_proto::v1::job_log::Body;
use conclave_proto::v1::{JobLog, LogEnd, LogHeader};
use serde::Serialize;

use super::answers::Answers;
use super::authorities::Authorities;
use super::check::{Check, MAX_TEXT, Outcome};
use super::published::Published;
use super::rounds::Rounds;
use super::{fetch, job, roster};
use crate::config::PartyConfig;
use crate::error::StartError;
use crate::ledger_views::JobReader;
use crate::owner::{JobView, find};
use conclave_vault::text::clip;

/// Results of verifying a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    /// The job's id.
    pub(crate) job: String,
    /// Rounds replayed.
    pub(crate) rounds: u64,
    /// Resulting kept draws per chain.
    pub(crate) draws: u64,
    /// SHA-256 over everything that follows from the parties' answers, for owners to compare; `None` if the coordinator shows no
    /// log.
    pub(crate) log_digest: Option<String>,
    /// All checks, in order.
    pub(crate) checks: Vec<Check>,
}

impl Report {
    /// Returns the names of the failed checks.
    pub(crate) fn failed(&self) -> Vec<&'static str> {
        self.checks.iter().filter(|check| check.result == Outcome::Fails).map(|check| check.name).collect()
    }
}

/// Fetches a job's log, given the job's id or a prefix of it, and checks it. `retired` are files of CAs that may have signed the
/// analyst's certificate before they were replaced.
///
/// # Errors
/// Fails for a job unknown to this party, a coordinator that can't be reached, and faults in this party's own files.
pub(crate) async fn verify(config: &PartyConfig, id: &str, retired: &[PathBuf]) -> Result<Report, StartError> {
    watched(config, id, retired, |_| ()).await
}

/// Checks a job's log as [`verify`] does, and shows each piece of it to `watch` first.
///
/// # Errors
/// The errors of [`verify`].
pub(crate) async fn watched(
    config: &PartyConfig,
    id: &str,
    retired: &[PathBuf],
    mut watch: impl FnMut(&JobLog),
) -> Result<Report, StartError> {
    let authorities = Authorities::of(&config.identity, retired).map_err(StartError::Input)?;
    let own = find(&config.ledger, id)?;
    let ledger = JobReader::open(&config.ledger_settings(), &own.request.job)?;
    let entered = ledger.entered().is_some();
    let (ledger, checks) = (Some(ledger), Vec::new());
    let mut checker = Checker { config, authorities, own, ledger, checks, log: None, stage: Stage::Start };
    let job = checker.own.request.job.clone();
    let take = |piece: JobLog| {
        watch(&piece);
        checker.take(piece)
    };
    match fetch::fetch(config, &job, take).await {
        Ok(end) => checker.finish(end),
        // The coordinator has sent queries of this job and denies it.
        Err(StartError::Identity(fault)) if fault.code == ErrorCode::NotFound && entered => {
            let denied = Check::fails("log", format!("this party has opened the job, but {}", fault.message));
            Ok(Report { job, rounds: 0, draws: 0, log_digest: None, checks: vec![denied] })
        }
        Err(error) => Err(error),
    }
}

/// Stage of receiving a log.
enum Stage {
    Start,
    Rounds(Box<Rounds>),
    /// The replay is complete.
    Draws(Box<Published>),
}

/// A log being received.
struct Checker<'c> {
    config: &'c PartyConfig,
    authorities: Authorities,
    own: JobView,
    ledger: Option<JobReader>,
    checks: Vec<Check>,
    log: Option<LogDigest>,
    stage: Stage,
}

impl Checker<'_> {
    fn take(&mut self, piece: JobLog) -> Result<(), StartError> {
        let stage = std::mem::replace(&mut self.stage, Stage::Start);
        self.stage = match (stage, piece.body) {
            (Stage::Start, Some(Body::Header(header))) => Stage::Rounds(self.begin(&header)?),
            (Stage::Rounds(mut rounds), Some(Body::Rounds(piece))) => {
                for round in piece.rounds {
                    self.log.iter_mut().for_each(|log| log.take(&round));
                    rounds.take(round)?;
                }
                Stage::Rounds(rounds)
            }
            (Stage::Rounds(rounds), Some(Body::Draws(chunk))) => {
                let mut published = Published::of(rounds.end()?);
                published.take(chunk);
                Stage::Draws(published.into())
            }
            (Stage::Draws(mut published), Some(Body::Draws(chunk))) => {
                published.take(chunk);
                Stage::Draws(published)
            }
            _ => return Err(fetch::unexpected_message()),
        };
        Ok(())
    }

    /// Makes the checks before the first round.
    fn begin(&mut self, header: &LogHeader) -> Result<Box<Rounds>, StartError> {
        let id = &self.own.request.job;
        let ledger = self.ledger.take().ok_or_else(fetch::unexpected_message)?;
        self.checks.push(job::signature(&self.authorities, header, id, ledger.entered()));
        self.checks.push(job::consent(self.config, header, &self.own.request, ledger.entered()));
        let unreadable = || StartError::Input(format!("this version can't read job {id}, so it can't replay it"));
        let spec: JobSpec = self.own.spec.clone().ok_or_else(unreadable)?;
        let logged = roster::read(header, &spec, ledger.entered());
        self.checks.extend(logged.check);
        self.log = Some(LogDigest::new(id, &self.own.request.digest, logged.digest.as_ref()));
        let place = spec.parties.iter().position(|name| *name == self.config.name).unwrap_or(usize::MAX);
        let answers = Answers::new(ledger, (spec.clone(), place), &self.own.request, self.config.budget.unit)?;
        Ok(Rounds::new(place, spec, header, answers).into())
    }

    fn finish(mut self, end: LogEnd) -> Result<Report, StartError> {
        let published = match self.stage {
            Stage::Start => return Err(fetch::unexpected_message()),
            Stage::Rounds(rounds) => Published::of(rounds.end()?),
            Stage::Draws(published) => *published,
        };
        let damage = Some(clip(&end.damage, MAX_TEXT)).filter(|damage| !damage.is_empty());
        let replayed = published.finish(damage, end.draws_removed, &mut self.checks);
        let log_digest = self.log.map(LogDigest::finish);
        Ok(Report { job: self.own.request.job, rounds: replayed.0, draws: replayed.1, log_digest, checks: self.checks })
    }
}
