//! A coordinator's jobs, asked for by an analyst.

use std::path::PathBuf;

use conclave_common::job::JobSpec;
use conclave_proto::error::Fault;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{BudgetRequest, JobRequest, JobStatus, ListRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::transport::Channel;

use super::jobs::completed;
use super::progress::Reporter;
use super::run::Run;
use crate::client::Connection;
use crate::ended::{FetchedJob, fetch_job_at};
use crate::extend::extension;
use crate::faults::{failure, refused};
use crate::follow::follow_with;
use crate::job_status::with_parties;
use crate::refit::{Changes, refit};
use crate::report::{Source, html};
use crate::short_id::whole_id_at;
use crate::submit::submit;
use crate::temporary::TemporaryFolder;
use crate::{budget, report};

/// A connection to a coordinator, as the analyst of an identity folder. It reconnects by itself.
#[derive(Clone)]
pub struct Client {
    connection: Connection,
    client: JobsClient<Channel>,
    warning: Option<String>,
}

/// The differences between a refit and its job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Refit {
    /// Names of parameters, or `default`, with their priors.
    pub priors: Vec<(String, String)>,
    /// Predictors to leave out.
    pub drop: Vec<String>,
    /// Parties to leave out.
    pub without: Vec<String>,
    /// Draws per chain.
    pub draws: Option<u64>,
    /// Number of chains.
    pub chains: Option<u64>,
    /// Seed of the draws.
    pub seed: Option<u64>,
}

impl Client {
    /// Connects to a coordinator as the analyst of an identity folder.
    ///
    /// # Errors
    /// An identity that cannot be read or is no analyst's; a coordinator that does not answer or has another CA.
    pub async fn connect(coordinator: &str, identity: PathBuf) -> Result<Self, Fault> {
        let connection = Connection { coordinator: coordinator.to_owned(), identity };
        let (client, warning) = connection.dial().await?;
        Ok(Self { connection, client, warning })
    }

    /// Returns the warning of a certificate that expires soon.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Completes, signs and submits a job: an object with `job`, its id, and `warnings`.
    ///
    /// # Errors
    /// A text that is no job; those of the coordinator.
    pub async fn submit(&self, job: &str, anyway: bool) -> Result<Value, Fault> {
        self.send(completed(job, anyway)?).await
    }

    async fn send(&self, text: String) -> Result<Value, Fault> {
        let warnings = JobSpec::parse(&text).map(|spec| spec.privacy.warnings([])).unwrap_or_default();
        let job = submit(&mut self.client.clone(), &self.connection.identity()?, text).await?;
        Ok(json!({ "job": job, "warnings": warnings }))
    }

    /// Returns the analyst's jobs, newest first: the object of `jobs --json`.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub async fn jobs(&self) -> Result<Value, Fault> {
        let mut jobs = self.client.clone().list(ListRequest {}).await.map_err(refused)?.into_inner().jobs;
        jobs.sort_by_key(|job| std::cmp::Reverse(job.submitted_unix_ms));
        Ok(json!({ "jobs": jobs.iter().map(with_parties).collect::<Vec<_>>() }))
    }

    /// Returns the analyst's remaining budget at these parties, or at all: the object of `budget --json`.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub async fn budget(&self, parties: Vec<String>) -> Result<Value, Fault> {
        let reply = self.client.clone().budget(BudgetRequest { parties }).await.map_err(refused)?;
        Ok(budget::object(&reply.into_inner()))
    }

    /// Returns the whole id of the job that begins with these characters.
    ///
    /// # Errors
    /// No such job, or several.
    pub async fn whole_id(&self, job: &str) -> Result<String, Fault> {
        whole_id_at(&mut self.client.clone(), job).await
    }

    /// Returns the state of a job.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub async fn status(&self, job: &str) -> Result<Value, Fault> {
        Ok(with_parties(&self.get(job).await?))
    }

    async fn get(&self, job: &str) -> Result<JobStatus, Fault> {
        let request = JobRequest { job: job.to_owned() };
        Ok(self.client.clone().get(request).await.map_err(refused)?.into_inner())
    }

    /// Follows a job until it has ended and returns its state; `observe` is given each state.
    ///
    /// # Errors
    /// Those of the coordinator; the fault with which a job failed.
    pub async fn watch(&self, job: &str, observe: impl FnMut(&Value) + Send) -> Result<Value, Fault> {
        let status = follow_with(&mut self.client.clone(), job, &mut Reporter::new(observe)).await?;
        if status.state == "failed" { Err(failure(&status)) } else { Ok(with_parties(&status)) }
    }

    /// Ends a job; the draws made so far are kept. Returns its state.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub async fn cancel(&self, job: &str) -> Result<Value, Fault> {
        let request = JobRequest { job: job.to_owned() };
        Ok(with_parties(&self.client.clone().cancel(request).await.map_err(refused)?.into_inner()))
    }

    /// Fetches the result of a job that has ended, with its draws.
    ///
    /// # Errors
    /// Those of the coordinator; a job without a result.
    pub async fn result(&self, job: &str) -> Result<Run, Fault> {
        let fetched = fetch_job_at(&mut self.client.clone(), job, &self.connection.options()).await?;
        let FetchedJob { source, json, draws, .. } = fetched;
        Ok(Run { job: source, json, draws })
    }

    /// Returns a job's text, byte for byte as signed.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub async fn job(&self, job: &str) -> Result<String, Fault> {
        crate::signed_job::text(&self.client, job).await
    }

    /// Returns a job's report as one HTML page; `per` has units as `age=10 years`.
    ///
    /// # Errors
    /// Those of the coordinator; a job that has not ended; a unit that is none of the job's.
    pub async fn report(&self, job: &str, per: &[String]) -> Result<String, Fault> {
        let per = per.iter().map(|text| text.parse::<report::Per>()).collect::<Result<Vec<_>, _>>();
        let folder = TemporaryFolder::create()?;
        let source = Source {
            coordinator: &self.connection.coordinator,
            options: &self.connection.options(),
            job,
            partial: &folder.path().join("draws"),
        };
        html(&mut self.client.clone(), &source, None, &per.map_err(crate::faults::input)?).await
    }

    /// Submits a job that continues an ended one, as [`Client::submit`].
    ///
    /// # Errors
    /// Those of the coordinator; a job that cannot be continued.
    pub async fn extend(&self, job: &str, draws: Option<u64>, epsilon: Option<f64>) -> Result<Value, Fault> {
        let text = extension(&mut self.client.clone(), job, draws, epsilon, &self.connection.options()).await?;
        self.send(text).await
    }

    /// Infers another posterior from an ended job's releases, at no charge.
    ///
    /// # Errors
    /// Those of the coordinator; a job that cannot be refitted so.
    pub async fn refit(&self, job: &str, changes: Refit) -> Result<Run, Fault> {
        let Refit { priors, drop, without, draws, chains, seed } = changes;
        let changes = Changes { priors, drop, without, draws, chains, seed };
        let folder = TemporaryFolder::create()?;
        let out = folder.path().join("draws");
        let refitted = refit(self.client.clone(), job, &self.connection.options(), &changes, Some(&out), None).await?;
        let mut object: Value = crate::result::read(&refitted.json)?;
        object["draws"] = Value::Null;
        Ok(Run { job: refitted.job, json: object.to_string(), draws: conclave_draws::Draws::read(&out)? })
    }
}
