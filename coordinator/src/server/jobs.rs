//! `Jobs`: the service for analysts, who see and cancel their own jobs.

use std::sync::Arc;
use std::time::Duration;

use conclave_common::job::JobSpec;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::{self, Role};
use conclave_proto::submission;
use conclave_proto::v1::jobs_server::Jobs;
use conclave_proto::v1::{
    BudgetReply, BudgetRequest, FileChunk, JobRequest, JobSource, JobStatus, ListReply, ListRequest, PartyBudget, SubmitReply,
    SubmitRequest, TracesReply, TracesRequest,
};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::files;
use super::log::{LogStream, Logs};
use super::sending::{self, Readers, UNREAD};
use super::stopping::stopped;
use crate::driver::DriverContext;
use crate::live::traces;
use crate::live::{Cached, CachedByKey};
use crate::registry::{JobRegistry, SignedSubmission};

/// Minimum time between two statuses of one `Watch`.
const SPACING: Duration = Duration::from_millis(200);

/// Maximum numbers of draws that one analyst may fetch, and of jobs that one may watch, at the same time.
const MOST_DRAWS: usize = 4;
const MOST_WATCHES: usize = 64;
/// Maximum number of budget requests that one analyst may have open.
const MOST_BUDGETS: usize = 2;
/// Time that a party has to report its remaining budget: it may be computing an answer.
const BUDGET_WITHIN: Duration = Duration::from_secs(5);

/// The analysts' service.
#[derive(Debug)]
pub(crate) struct JobsService {
    job_registry: Arc<JobRegistry>,
    context: DriverContext,
    stopping: watch::Receiver<bool>,
    logs: Logs,
    draws_readers: Readers,
    watchers: Readers,
    budgets_readers: Readers,
    traces: CachedByKey<(String, bool), Cached<TracesReply>>,
}

impl JobsService {
    pub(crate) fn new(job_registry: Arc<JobRegistry>, context: DriverContext, stopping: watch::Receiver<bool>) -> Self {
        let logs = Logs::new(Arc::clone(&job_registry), context.store.clone(), stopping.clone());
        let budgets_readers = Readers::new("budgets", MOST_BUDGETS);
        let (draws_readers, watchers) = (Readers::new("draws", MOST_DRAWS), Readers::new("states of jobs", MOST_WATCHES));
        Self { job_registry, context, stopping, logs, draws_readers, watchers, budgets_readers, traces: CachedByKey::default() }
    }
}

fn analyst_of<T>(request: &Request<T>) -> Result<String, Status> {
    Ok(identity::of_request(request)?.require(Role::Analyst)?.name)
}

#[tonic::async_trait]
impl Jobs for JobsService {
    type WatchStream = ReceiverStream<Result<JobStatus, Status>>;
    type DrawsStream = ReceiverStream<Result<FileChunk, Status>>;
    type LogStream = LogStream;

    async fn submit(&self, request: Request<SubmitRequest>) -> Result<Response<SubmitReply>, Status> {
        let analyst = analyst_of(&request)?;
        let SubmitRequest { spec_toml, submission } = request.into_inner();
        let refused = |fault: Fault| {
            tracing::info!(analyst, reason = %fault, "job refused");
            Status::from(fault)
        };
        // The parties check it too, each with its own CA; here a mistake is reported before anything is stored.
        let job = submission::check(submission.as_ref(), &analyst, &spec_toml).map_err(refused)?;
        let signed = SignedSubmission { job, submission: submission.unwrap_or_default() };
        let job = self.job_registry.submit(spec_toml, &analyst, signed).await.map_err(refused)?;
        Ok(Response::new(SubmitReply { job }))
    }

    async fn get(&self, request: Request<JobRequest>) -> Result<Response<JobStatus>, Status> {
        let status = self.watched(&request)?.borrow().clone();
        Ok(Response::new(status.to_wire(&self.context.party_registry)))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListReply>, Status> {
        let jobs = self.job_registry.list(&analyst_of(&request)?);
        let jobs = jobs.iter().map(|status| status.to_wire(&self.context.party_registry)).collect();
        Ok(Response::new(ListReply { jobs }))
    }

    async fn watch(&self, request: Request<JobRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let analyst = analyst_of(&request)?;
        let mut status = self.watched(&request)?;
        let place = self.watchers.admit(&analyst)?;
        let party_registry = Arc::clone(&self.context.party_registry);
        let mut stopping = self.stopping.clone();
        let (sender, stream) = mpsc::channel(4);
        tokio::spawn(async move {
            let _place = place;
            loop {
                let shown = status.borrow_and_update().clone();
                let ended = shown.state.has_ended();
                let sent = tokio::time::timeout(UNREAD, sender.send(Ok(shown.to_wire(&party_registry)))).await;
                if !matches!(sent, Ok(Ok(()))) || ended {
                    return;
                }
                let next = async {
                    tokio::time::sleep(SPACING).await;
                    status.changed().await
                };
                tokio::select! {
                    changed = next => if changed.is_err() { return },
                    () = sender.closed() => return,
                    () = stopped(&mut stopping) => {
                        let message = "the coordinator is stopping; the job resumes when it is back";
                        // A client that does not read needs no notice.
                        let _ = sender.try_send(Err(Fault::new(ErrorCode::Unreachable, message).into()));
                        return;
                    }
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn cancel(&self, request: Request<JobRequest>) -> Result<Response<JobStatus>, Status> {
        let analyst = analyst_of(&request)?;
        let status = self.job_registry.cancel(&request.into_inner().job, &analyst).await?;
        Ok(Response::new(status.to_wire(&self.context.party_registry)))
    }

    async fn draws(&self, request: Request<JobRequest>) -> Result<Response<Self::DrawsStream>, Status> {
        let analyst = analyst_of(&request)?;
        let (job, over) = {
            let watched = self.watched(&request)?;
            let status = watched.borrow();
            (status.id.clone(), status.state.has_ended() && status.draws > 0)
        };
        let root = self.job_registry.draws_of(&job);
        let place = self.draws_readers.admit(&analyst)?;
        let stream = sending::stream(place, self.stopping.clone(), move |pieces| files::send(&root, over, pieces))?;
        Ok(Response::new(stream))
    }

    async fn source(&self, request: Request<JobRequest>) -> Result<Response<JobSource>, Status> {
        let analyst = analyst_of(&request)?;
        let spec_toml = self.job_registry.source(&request.get_ref().job, &analyst)?;
        Ok(Response::new(JobSource { spec_toml }))
    }

    async fn log(&self, request: Request<JobRequest>) -> Result<Response<Self::LogStream>, Status> {
        let analyst = analyst_of(&request)?;
        Ok(Response::new(self.logs.for_analyst(&analyst, &request.get_ref().job)?))
    }

    async fn budget(&self, request: Request<BudgetRequest>) -> Result<Response<BudgetReply>, Status> {
        let analyst = analyst_of(&request)?;
        let _place = self.budgets_readers.admit(&analyst)?;
        let registry = &self.context.party_registry;
        let known: Vec<String> = registry.seen().into_iter().map(|(party, _)| party).collect();
        let asked = request.into_inner().parties;
        if let Some(stranger) = asked.iter().find(|party| !known.contains(party)) {
            let message = format!("no party {stranger:?} has ever attached to this coordinator; known are {}", known.join(", "));
            return Err(Fault::new(ErrorCode::InvalidInput, message).into());
        }
        let mut names: Vec<String> = known.into_iter().filter(|party| asked.is_empty() || asked.contains(party)).collect();
        names.sort();
        // All are asked before any reply is awaited.
        let waiting: Vec<_> = names.into_iter().map(|name| (registry.ask_budget(&name, &analyst), name)).collect();
        let until = tokio::time::Instant::now() + BUDGET_WITHIN;
        let mut parties = Vec::with_capacity(waiting.len());
        for (reply, name) in waiting {
            let (standing, budget) = match reply {
                None => ("away", None),
                Some(reply) => match tokio::time::timeout_at(until, reply).await {
                    Ok(Ok(reply)) if reply.told => ("told", Some(reply)), // wire name
                    Ok(Ok(_)) => ("untold", None),                        // wire name
                    _ => ("silent", None),
                },
            };
            parties.push(PartyBudget { name, standing: standing.to_owned(), budget });
        }
        Ok(Response::new(BudgetReply { parties }))
    }

    async fn traces(&self, request: Request<TracesRequest>) -> Result<Response<TracesReply>, Status> {
        let analyst = analyst_of(&request)?;
        let shown = self.job_registry.view_for(&request.get_ref().job, &analyst)?;
        let Some(live) = shown.live else { return Ok(Response::new(TracesReply::default())) };
        let (id, ended) = {
            let status = shown.status.borrow();
            (status.id.clone(), status.state.has_ended())
        };
        let compute = move || match JobSpec::parse(&shown.source) {
            Ok(spec) => traces(&live, &spec.draw_names()),
            Err(_) => TracesReply::default(),
        };
        let reply = self.traces.at((id, ended)).get(compute).await;
        let reply = reply.ok_or_else(|| Fault::new(ErrorCode::Internal, "the chains can't be summarised"))?;
        Ok(Response::new((*reply).clone()))
    }
}

impl JobsService {
    fn watched(&self, request: &Request<JobRequest>) -> Result<watch::Receiver<crate::status::Status>, Status> {
        let analyst = analyst_of(request)?;
        Ok(self.job_registry.watch(&request.get_ref().job, &analyst)?)
    }
}
