//! The stream of a job's statuses, followed to its end however often the connection breaks.

use std::time::{Duration, Instant};

use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{JobRequest, JobStatus, TracesReply, TracesRequest};
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior};
use tonic::Code;
use tonic::transport::Channel;

use super::screen::Screen;

/// A coordinator that does not come back within this time ends the watching, not the job.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause before the watch is asked for again.
const RETRY: Duration = Duration::from_secs(1);

/// How often the chains are asked for while a job runs.
const LOOK: Duration = Duration::from_secs(2);

/// Whether a job in this state will not change any more.
pub(crate) fn has_ended(state: &str) -> bool {
    matches!(state, "finished" | "cancelled" | "failed")
}

/// Follows a job until it has ended and gives its last status. Progress goes to standard error.
pub(crate) async fn follow(client: &mut JobsClient<Channel>, job: &str) -> Result<JobStatus, Fault> {
    // Budgets can be projected only with the job's delta; a coordinator that can't tell it is no reason not to watch.
    let source = client.source(JobRequest { job: job.to_owned() }).await.ok().map(|reply| reply.into_inner().spec_toml);
    let mut screen = Screen::new(source.as_deref());
    let mut lost_since: Option<Instant> = None;
    loop {
        let fault = match watch_once(client, job, &mut screen, &mut lost_since).await {
            Ok(Some(status)) => {
                screen.finish();
                return Ok(status);
            }
            // A stream that ends before the job does: the coordinator is going down.
            Ok(None) => Fault::new(ErrorCode::Unreachable, "the coordinator closed the connection"),
            Err(fault) => fault,
        };
        if fault.code != ErrorCode::Unreachable {
            screen.finish();
            return Err(fault);
        }
        let since = *lost_since.get_or_insert_with(|| {
            screen.say(&format!("{fault}; the job does not need us, trying again"));
            Instant::now()
        });
        if since.elapsed() > PATIENCE {
            screen.finish();
            return Err(Fault::new(
                ErrorCode::Unreachable,
                format!(
                    "the coordinator has been unreachable for {} s. The job goes on when it is back: \
                     `conclave watch {job}`",
                    PATIENCE.as_secs()
                ),
            ));
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn watch_once(
    client: &mut JobsClient<Channel>,
    job: &str,
    screen: &mut Screen,
    lost_since: &mut Option<Instant>,
) -> Result<Option<JobStatus>, Fault> {
    let request = JobRequest { job: job.to_owned() };
    let fault = |status: tonic::Status| from_status(&status);
    let mut stream = client.watch(request).await.map_err(fault)?.into_inner();
    let mut looks = Looks::new(client.clone(), job);
    loop {
        tokio::select! {
            status = stream.message() => {
                let Some(status) = status.map_err(fault)? else { return Ok(None) };
                *lost_since = None;
                looks.running = status.state == "running";
                screen.show(&status);
                if has_ended(&status.state) {
                    return Ok(Some(status));
                }
            }
            traces = looks.next() => screen.trace(traces),
        }
    }
}

/// Asks how the chains stand, again and again while they run. A coordinator that can't tell is followed without.
struct Looks {
    client: JobsClient<Channel>,
    job: String,
    running: bool,
    known: bool,
    due: Interval,
    /// The question that is on its way, if one is.
    asked: JoinSet<Result<TracesReply, tonic::Status>>,
}

impl Looks {
    fn new(client: JobsClient<Channel>, job: &str) -> Self {
        let mut due = tokio::time::interval(LOOK);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { client, job: job.to_owned(), running: false, known: true, due, asked: JoinSet::new() }
    }

    /// The next answer. Nothing is lost where this is dropped and called again.
    async fn next(&mut self) -> TracesReply {
        loop {
            if let Some(answer) = self.asked.join_next().await {
                match answer {
                    Ok(Ok(traces)) => return traces,
                    Ok(Err(status)) if status.code() == Code::Unimplemented => self.known = false,
                    // The stream of statuses tells what matters of a connection that broke.
                    _ => {}
                }
            }
            if !self.known || !self.running {
                // Called again when the next status has come.
                std::future::pending::<()>().await;
            }
            self.due.tick().await;
            let (mut client, request) = (self.client.clone(), TracesRequest { job: self.job.clone() });
            self.asked.spawn(async move { client.traces(request).await.map(tonic::Response::into_inner) });
        }
    }
}
