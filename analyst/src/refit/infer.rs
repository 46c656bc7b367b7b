//! Infers another posterior from a job's releases, and keeps its draws.

use std::path::Path;
use std::time::Instant;

use conclave_common::job::{JobSpec, Refit};
use conclave_draws::attributes;
use conclave_draws::result::{self, Outcome, PartyOutcome};
use conclave_draws::spent::Spent;
use conclave_draws::zarr::DrawStore;
use conclave_inference::sampler::{Refitted, RunReport};
use conclave_predict::Level;
use conclave_proto::error::Fault;
use conclave_proto::v1::jobs_client::JobsClient;
use tonic::transport::Channel;

use super::releases::{EndedJob, fetch};
use crate::faults::input;
use crate::interval;
use crate::result::read;

/// Id of a refit, unknown to any coordinator.
const JOB: &str = "refit";

/// The differences between a refit and its job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Names of parameters, or `default`, with their priors.
    pub(crate) priors: Vec<(String, String)>,
    /// Predictors to leave out.
    pub(crate) drop: Vec<String>,
    /// Parties to leave out.
    pub(crate) without: Vec<String>,
    /// Draws per chain.
    pub(crate) draws: Option<u64>,
    /// Number of chains.
    pub(crate) chains: Option<u64>,
    /// Seed of the draws.
    pub(crate) seed: Option<u64>,
}

/// A refit that was run.
pub(crate) struct NewRun {
    /// The job of the refit.
    pub(crate) job: String,
    /// The run's object.
    pub(crate) json: String,
}

/// Refits a job, and returns the new job and its run's object. The draws are written to `out`, a new folder, if one is given; `level` is that of
/// intervals other than 90%, and `options` are those of suggested commands.
///
/// # Errors
/// Those of the coordinator; a job that cannot be refitted so; a folder that cannot be written.
pub(crate) async fn refit(
    client: JobsClient<Channel>,
    job: &str,
    options: &str,
    changes: &Changes,
    out: Option<&Path>,
    level: Option<Level>,
) -> Result<NewRun, Fault> {
    let ended = fetch(client, job, options).await?;
    let Changes { priors, drop, without, draws, chains, seed } = changes;
    let (draws, chains, seed) = (*draws, *chains, *seed);
    let unfit = |why: &dyn std::fmt::Display| input(format!("job {job} can't be refitted: {why}"));
    let text = Refit { priors, drop, without, draws, chains, seed }.text(&ended.text).map_err(|e| unfit(&e))?;
    let spec = JobSpec::parse(&text).map_err(|e| unfit(&e))?;
    let began = Instant::now();
    let refitted = ended.releases.refit(&spec).map_err(|e| unfit(&e))?;
    let kept = Kept { job, spec: &spec, began, out, level };
    Ok(NewRun { json: kept.keep(&ended, refitted)?, job: text })
}

/// A refit whose draws are kept.
struct Kept<'a> {
    job: &'a str,
    spec: &'a JobSpec,
    began: Instant,
    out: Option<&'a Path>,
    level: Option<Level>,
}

impl Kept<'_> {
    /// Summarises the draws as a JSON object, and writes them to the folder if one is given.
    fn keep(&self, job: &EndedJob, refitted: Refitted) -> Result<String, Fault> {
        let Self { spec, out, .. } = *self;
        let (names, chains) = (spec.draw_names(), spec.sampler.chains as usize);
        let written = |e: std::io::Error| Fault::of_file(out.unwrap_or(Path::new("")), "be written", &e);
        let mut draws = match out {
            Some(out) => DrawStore::create(out, chains, &names, &attributes::at_start(spec, JOB)).map_err(written)?,
            None => DrawStore::in_memory(Path::new(""), chains, &names),
        };
        refitted.draws.into_iter().for_each(|draw| draws.push(&draw.into()));
        let parties = job.parties.iter().filter(|(name, _)| spec.parties.contains(name));
        let outcome = Outcome {
            stopped_by: job.stopped_by,
            budget_party: None,
            iterations: 0,
            seconds: self.began.elapsed().as_secs_f64(),
            refit_of: Some(self.job.to_owned()),
            warnings: Vec::new(),
            report: RunReport { inference: Some(refitted.inference), ..RunReport::default() },
            parties: parties
                .map(|(name, held)| PartyOutcome { name: name.clone(), metadata: Some(*held), spent: Spent::default() })
                .collect(),
        };
        let result = result::build(spec, JOB, out, &draws, &outcome);
        if out.is_some() {
            draws.finish(spec, &attributes::at_end(spec, JOB, &result)).map_err(written)?;
        }
        let Some(level) = self.level else { return Ok(result.to_json()) };
        let mut object = read(&result.to_json())?;
        interval::of_store(&mut object, spec, &draws, level);
        Ok(object.to_string())
    }
}
