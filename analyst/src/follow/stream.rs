//! Follows the stream of a job's statuses to its end, across broken connections.

use std::time::{Duration, Instant};

use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{JobRequest, JobStatus, TracesReply, TracesRequest};
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior};
use tonic::Code;
use tonic::transport::Channel;

use super::observer::Observer;
use super::screen::Screen;
use crate::faults::refused;

/// Time without a connection after which watching ends; the job continues.
const PATIENCE: Duration = Duration::from_secs(120);
const RETRY: Duration = Duration::from_secs(1);

/// Interval between requests for the chains of a running job.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// Returns true if a job in this state will not change any more.
pub(crate) fn has_ended(state: &str) -> bool {
    matches!(state, "finished" | "cancelled" | "failed")
}

/// Follows a job until it has ended and returns its last status. Progress is printed on standard error.
pub(crate) async fn follow(client: &mut JobsClient<Channel>, job: &str) -> Result<JobStatus, Fault> {
    follow_with(client, job, &mut Screen::default()).await
}

/// Follows a job until it has ended, and returns its last status.
///
/// # Errors
/// Those of the coordinator; [`ErrorCode::Unreachable`] if it stays away for two minutes.
pub(crate) async fn follow_with(
    client: &mut JobsClient<Channel>,
    job: &str,
    screen: &mut dyn Observer,
) -> Result<JobStatus, Fault> {
    // Budgets can be projected only with the job's delta; the job is followed without it if the request fails.
    let source = client.source(JobRequest { job: job.to_owned() }).await.ok().map(|reply| reply.into_inner().spec_toml);
    screen.begin(source.as_deref());
    let mut lost_since: Option<Instant> = None;
    loop {
        let fault = match watch_once(client, job, screen, &mut lost_since).await {
            Ok(Some(status)) => {
                screen.finish();
                return Ok(status);
            }
            // The stream ended before the job: the coordinator is shutting down.
            Ok(None) => Fault::new(ErrorCode::Unreachable, "the coordinator closed the connection"),
            Err(fault) => fault,
        };
        if fault.code != ErrorCode::Unreachable {
            screen.finish();
            return Err(fault);
        }
        let since = *lost_since.get_or_insert_with(|| {
            screen.notice(&format!("{fault}; the job continues without this watch; reconnecting"));
            Instant::now()
        });
        if since.elapsed() > PATIENCE {
            screen.finish();
            return Err(Fault::new(
                ErrorCode::Unreachable,
                format!("the coordinator has been unreachable for {} s", PATIENCE.as_secs()),
            )
            .with_remedy(format!("the job continues once it is back; follow it again with `conclave watch {job}`")));
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn watch_once(
    client: &mut JobsClient<Channel>,
    job: &str,
    screen: &mut dyn Observer,
    lost_since: &mut Option<Instant>,
) -> Result<Option<JobStatus>, Fault> {
    let request = JobRequest { job: job.to_owned() };
    let mut stream = client.watch(request).await.map_err(refused)?.into_inner();
    let mut poller = TracePoller::new(client.clone(), job);
    loop {
        tokio::select! {
            status = stream.message() => {
                let Some(status) = status.map_err(refused)? else { return Ok(None) };
                *lost_since = None;
                poller.running = status.state == "running";
                screen.status(&status);
                if has_ended(&status.state) {
                    return Ok(Some(status));
                }
            }
            traces = poller.next() => screen.traces(traces),
        }
    }
}

/// Polls the chains' traces while they run. Without a coordinator that supports it, the job is followed without traces.
struct TracePoller {
    client: JobsClient<Channel>,
    job: String,
    running: bool,
    supported: bool,
    due: Interval,
    pending: JoinSet<Result<TracesReply, tonic::Status>>,
}

impl TracePoller {
    fn new(client: JobsClient<Channel>, job: &str) -> Self {
        let mut due = tokio::time::interval(POLL_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { client, job: job.to_owned(), running: false, supported: true, due, pending: JoinSet::new() }
    }

    /// Returns the next answer. Cancel-safe: dropping and calling it again loses nothing.
    async fn next(&mut self) -> TracesReply {
        loop {
            if let Some(answer) = self.pending.join_next().await {
                match answer {
                    Ok(Ok(traces)) => return traces,
                    Ok(Err(status)) if status.code() == Code::Unimplemented => self.supported = false,
                    // A broken connection is reported by the stream of statuses.
                    _ => {}
                }
            }
            if !self.supported || !self.running {
                // Called again after the next status.
                std::future::pending::<()>().await;
            }
            self.due.tick().await;
            let (mut client, request) = (self.client.clone(), TracesRequest { job: self.job.clone() });
            self.pending.spawn(async move { client.traces(request).await.map(tonic::Response::into_inner) });
        }
    }
}
